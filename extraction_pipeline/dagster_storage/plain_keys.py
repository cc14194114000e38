"""Partitions definitions that tell which keys are theirs without an object or a question for each.

Dagster makes an object with two dictionaries of every key of two dimensions, and asks the database
for dynamic keys by the thousand: 10 s and 250 MB for 300,000 keys, of which it then stores the
strings.
"""

from collections.abc import Iterator, Set
from typing import cast

from dagster import (
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
)
from dagster._core.definitions.partitions.utils import MultiPartitionKey

DELIMITER = "|"


def with_plain_keys(definition: PartitionsDefinition | None) -> PartitionsDefinition | None:
    """The same partitions with such a filter, or what was given where it has one of its own."""
    if isinstance(definition, DynamicPartitionsDefinition) and definition.name is not None:
        return _DynamicKeys(name=definition.name)
    if isinstance(definition, MultiPartitionsDefinition):
        dimensions = {one.name: one.partitions_def for one in definition.partitions_defs}
        if len(dimensions) == 2 and all(
            isinstance(one, DynamicPartitionsDefinition | StaticPartitionsDefinition)
            for one in dimensions.values()
        ):
            return _PlainMultiKeys(dimensions)
    return definition


class _DynamicKeys(DynamicPartitionsDefinition):
    def filter_valid_partition_keys(self, partition_keys: set[str]) -> Set[str]:
        """Those that are partitions. All keys were read already, to tell whether one was added."""
        return partition_keys & set(self.get_partition_keys()) if partition_keys else set()


class _PlainMultiKeys(MultiPartitionsDefinition):
    def filter_valid_partition_keys(self, partition_keys: set[str]) -> set[MultiPartitionKey]:
        """Those that are partitions, as the strings they came as: they are stored so."""
        return cast("set[MultiPartitionKey]", set(self._valid(partition_keys)))

    def _valid(self, partition_keys: set[str]) -> Iterator[str]:
        if not partition_keys:
            return
        firsts, seconds = (
            set(dimension.partitions_def.get_partition_keys()) for dimension in self.partitions_defs
        )
        for key in partition_keys:
            first, found, second = key.partition(DELIMITER)
            if found and first in firsts and second in seconds and DELIMITER not in second:
                yield key

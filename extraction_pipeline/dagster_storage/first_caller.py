"""What a record of Dagster would keep of whoever makes the first one.

Dagster compiles the constructor of a record when it is first called, and the compiled function
keeps that caller's local variables for good. For the ranges of a grid these are all partitions of
the first grid that anybody looked at: 200 MB of the webserver with 300,000 keys.
"""

import sys

GRIDS = "dagster_graphql.implementation.partition_status_utils"


def be_first_to_make_a_range() -> None:
    """Make a range of a grid here, where no variable is worth keeping. Does nothing outside the
    webserver."""
    grids = sys.modules.get(GRIDS)
    if grids is not None:
        grids.MultiPartitionRange(
            primary_dim_start_key="",
            primary_dim_end_key="",
            primary_dim_start_time=None,
            primary_dim_end_time=None,
            secondary_dim=None,
        )

"""What all adapters over HTTP have: a name, an endpoint, limits, and one client for their calls."""

from urllib.parse import urlsplit

from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.http import HttpClient
from extraction_pipeline.providers.identifiers import account_id
from extraction_pipeline.providers.limits import narrowed


class HttpProvider:
    """The part of a `BatchProvider` that does not depend on the wire format."""

    def __init__(
        self, endpoint: ProviderEndpoint, limits: ProviderLimits, dialect: ProviderDialect
    ) -> None:
        self._endpoint = endpoint
        self._limits = narrowed(limits, endpoint.limits)
        self._name = dialect.provider
        self._http = HttpClient(endpoint, dialect)

    @property
    def name(self) -> str:
        """The name that collections and the ledger use."""
        return self._name

    @property
    def base_url(self) -> str:
        """Where calls go, without credentials."""
        return self._endpoint.base_url

    @property
    def account(self) -> str:
        """What all calls with this key at this address share, as a hash that tells neither."""
        endpoint = self._endpoint
        # The local batch server gets another port with each start, and keeps its jobs.
        local = urlsplit(endpoint.base_url).path if endpoint.is_loopback else None
        return account_id(
            self._name,
            endpoint.base_url if local is None else local,
            endpoint.api_key,
            endpoint.organization,
            endpoint.project,
        )

    @property
    def limits(self) -> ProviderLimits:
        """What one job may hold, and the account may have under way."""
        return self._limits

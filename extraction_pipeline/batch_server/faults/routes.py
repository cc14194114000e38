"""`GET` and `PUT /faults`: the plan that is in force."""

from collections.abc import Callable

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import invalid_body
from extraction_pipeline.batch_server.bodies import read_body
from extraction_pipeline.batch_server.faults.in_force import FaultsInForce
from extraction_pipeline.batch_server.faults.plan import FaultPlan


class FaultRoutes:
    """The handlers. `wake` tells the processor that batches may go on."""

    def __init__(self, faults: FaultsInForce, wake: Callable[[], None]) -> None:
        self._faults = faults
        self._wake = wake

    def routes(self) -> list[BaseRoute]:
        """Paths and methods."""
        return [
            Route("/faults", self.get, methods=["GET"]),
            Route("/faults", self.put, methods=["PUT"]),
        ]

    def get(self, request: Request) -> Response:
        """The plan, as it could be put again."""
        return _json(self._faults.plan)

    async def put(self, request: Request) -> Response:
        """Another plan from here on; all counting begins anew."""
        try:
            plan = FaultPlan.model_validate_json(await read_body(request))
        except ValidationError as error:
            raise invalid_body(error) from None
        await run_in_threadpool(self._faults.put, plan)
        self._wake()
        return _json(plan)


def _json(plan: FaultPlan) -> Response:
    return JSONResponse(plan.model_dump(mode="json", exclude_defaults=True))

"""Shared by all handlers: the runtime of a request, client ids, paging, and the body they document."""

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import msgspec
from litestar import Request, Response
from litestar.params import QueryParameter

from longboat.errors import BadInput
from longboat.wire.ids import check_own_id
from longboat.wire.models import Accepted

if TYPE_CHECKING:
    from longboat.runtime.app import App
    from longboat.runtime.workspace.workspace import Workspace

HttpRequest: TypeAlias = Request[Any, Any, Any]

W = "/v1/workspaces/{workspace_id:str}"
S = W + "/agent/sessions/{session_id:str}"

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="Maximum number of items.")]
ClientId = Annotated[str | None, QueryParameter(description="The client's name; required here.")]
After = Annotated[
    str | None, QueryParameter(description="`next` of the previous page.", schema_extra={"pattern": "^[0-9]{1,18}$"})
]


def app_of(request: HttpRequest) -> "App":
    return cast("App", request.app.state["app"])


async def workspace_of(request: HttpRequest) -> "Workspace":
    """The workspace in the path; opened again if it was closed."""
    return await app_of(request).workspace(request.path_params["workspace_id"])


def name_of(client_id: str | None) -> str | None:
    """The client_id, where it is optional."""
    return None if client_id is None else client_id_of(client_id)


def client_id_of(value: str | None) -> str:
    """The client_id, where it is required."""
    if value is None:
        raise BadInput("client_id is missing: add ?client_id=… with your name.", code="bad_client_id")
    return check_own_id(value, field="client_id")


def accepted(workspace_id: str, answer: Accepted) -> Response[Accepted]:
    """The response to any request that became a run, with its location."""
    place = f"/v1/workspaces/{workspace_id}/runs/{answer.run_id}"
    return Response(answer, status_code=202, headers={"location": place})


def takes(shape: type[msgspec.Struct], *, also: tuple[int, ...] = (), optional: bool = False) -> dict[str, Any]:
    """For a handler's `opt`: the shape of the body, and whether it may be omitted, which means `{}`. `also`: further
    statuses for the API description."""
    return {"body": shape, "body_optional": optional, "also": also}


def needs(*names: str) -> dict[str, Any]:
    """For a handler's `opt`: its required query parameters."""
    return {"needs": names}

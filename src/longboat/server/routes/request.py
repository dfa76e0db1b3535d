"""Helpers for reading a request: the runtime behind it, client ids, pages, and the documented body."""

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
ClientId = Annotated[str | None, QueryParameter(description="The client's own name.")]
After = Annotated[
    str | None, QueryParameter(description="`next` of the previous page.", schema_extra={"pattern": "^[0-9]{1,18}$"})
]


def app_of(request: HttpRequest) -> "App":
    return cast("App", request.app.state["app"])


async def workspace_of(request: HttpRequest) -> "Workspace":
    """The workspace that the path names; a closed one is opened again."""
    return await app_of(request).workspace(request.path_params["workspace_id"])


def name_of(client_id: str | None) -> str | None:
    """The client_id where one may be given."""
    return None if client_id is None else client_id_of(client_id)


def client_id_of(value: str | None) -> str:
    """The client_id where one is needed."""
    if value is None:
        raise BadInput("client_id is missing. Identify yourself with ?client_id=….", code="bad_client_id")
    return check_own_id(value, field="client_id")


def accepted(workspace_id: str, answer: Accepted) -> Response[Accepted]:
    """The answer to whatever became a run, with where it is."""
    place = f"/v1/workspaces/{workspace_id}/runs/{answer.run_id}"
    return Response(answer, status_code=202, headers={"location": place})


def takes(shape: type[msgspec.Struct], *, also: tuple[int, ...] = (), optional: bool = False) -> dict[str, Any]:
    """For a handler's `opt`: the shape of the body and whether it may be left out, which stands for `{}`. `also`: what
    statuses the API description names besides."""
    return {"body": shape, "body_optional": optional, "also": also}


def needs(*names: str) -> dict[str, Any]:
    """For a handler's `opt`: query parameters that it refuses to do without."""
    return {"needs": names}

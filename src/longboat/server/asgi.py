"""The ASGI application of an open runtime: authentication in front of the routes."""

from typing import TYPE_CHECKING, cast

from litestar import Litestar
from litestar.config.app import AppConfig
from litestar.datastructures import State
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from longboat.server.auth import Gate, Policy, refuse
from longboat.server.errors import answer_error
from longboat.server.routes import HANDLERS
from longboat.server.wrong_tokens import WrongTokens

if TYPE_CHECKING:
    from longboat.fleet.node import Node
    from longboat.runtime.app import App


class _Router(Litestar):
    """Litestar without its support for pydantic, attrs and OpenTelemetry, which would cost 100 ms at the start.

    Both methods are undocumented parts of Litestar: if they disappear, nothing breaks, but the start gets slower and
    test_server_process fails.
    """

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]

    @staticmethod
    def _patch_opentelemetry_middleware(config: AppConfig) -> AppConfig:
        return config


def build_asgi(app: "App") -> tuple[Gate, State]:
    """What the HTTP server calls, and what its routes find there."""
    settings = app.settings
    node = None if app.ownership.alone else cast("Node", app.ownership)
    policy = Policy(
        token=settings.token,
        listen_host=settings.host,
        allowed_hosts=settings.server.allowed_hosts,
        cluster="" if node is None else node.cluster_name,
    )
    wrong_tokens = WrongTokens()
    router = _Router(
        HANDLERS,
        state=State({"app": app, "policy": policy, "wrong_tokens": wrong_tokens}, deep_copy=False),
        exception_handlers={Exception: answer_error},
        request_max_body_size=settings.server.max_body_mb << 20,
        response_headers={"x-content-type-options": "nosniff"},
        openapi_config=None,
        logging_config=None,
    )
    if node is None:
        return Gate(router, policy, wrong_tokens), router.state
    from longboat.fleet.door import Door

    door = Door(router, app, node, refuse=refuse)
    return Gate(door, policy, wrong_tokens, is_from_node=door.is_from_node), router.state

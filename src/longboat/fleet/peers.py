"""Whether a request comes from another node: decided by its head alone."""

from typing import Any

from longboat.fleet.node import Node
from longboat.fleet.relay import from_scope
from longboat.fleet.signature import HEADER, verify


class Peers:
    def __init__(self, node: Node) -> None:
        self._node = node

    def is_from_node(self, scope: Any) -> bool | None:
        """None: it does not say so."""
        given = next((value for name, value in scope["headers"] if name == HEADER.encode()), None)
        if given is None:
            return None
        request = from_scope(scope)
        return (
            verify(
                given.decode("latin-1"),
                method=request.method,
                target=request.target,
                secret=self._node.secret,
                now=self._node.database_time(),
            )
            is not None
        )

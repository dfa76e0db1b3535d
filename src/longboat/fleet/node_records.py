"""What clients are shown of nodes, and of where workspaces are: rows of the store, put as the wire and the runtime have
them. Pure."""

from datetime import UTC, datetime

from longboat.runtime.clock import as_text
from longboat.runtime.ownership import Place
from longboat.store.postgres.nodes import NodeRecord, PlaceRecord
from longboat.wire.listings import NodeInfo, NodeState


def node_info(node: NodeRecord, *, answering: bool) -> NodeInfo:
    return NodeInfo(
        name=node.name,
        url=node.url,
        version=node.version,
        started_at=node.started_at,
        seen_at=as_text(node.seen_at.astimezone(UTC)),
        state=_state(node),
        leaving=node.leaving,
        owns=node.owns,
        home_of=node.home_of,
        runs_active=node.runs_active,
        runs_waiting=node.runs_waiting,
        answering=answering,
    )


def _state(node: NodeRecord) -> NodeState:
    if not node.alive:
        return NodeState.GONE
    return NodeState.LEAVING if node.leaving else NodeState.RUNNING


def place(found: PlaceRecord) -> Place:
    return Place(
        home=found.home or None,
        owner=found.owner,
        away=found.away,
        away_since=seen_text(found.away_since if found.away else None),
        home_stopping=found.away and found.home_stopping,
        ready=found.ready and not found.away,
    )


def seen_text(at: datetime | None) -> str | None:
    return as_text(at.astimezone(UTC)) if at is not None else None

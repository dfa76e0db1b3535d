"""Whether this server may work on a workspace. Alone on its store, it always may."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from longboat.wire.listings import NodeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """On what terms a server owns a workspace."""

    away_since: str | None = None
    """The directory is on another node, which is not running since then. Nothing can run here."""
    allowed: tuple[float, float] | None = None
    """For how many seconds commands may run unless the lease is renewed, and since when by the clock of
    longboat.tools.process.deadline; None: without end."""
    resume: bool = False
    """If the directory is away: whether its configuration says that an active run continues after a crash."""


class Ownership(Protocol):
    """What the app asks before it opens a workspace, and tells once it has closed it."""

    alone: bool
    """No other server uses this store."""

    def home_of(self, directory: Path) -> str:
        """The node whose disk has this directory of ours; empty: every node has it."""
        ...

    async def claim(self, workspace_id: str) -> Claimed:
        """Become the owner; raises OwnedElsewhere."""
        ...

    async def note_policy(self, workspace_id: str, *, resume: bool) -> None:
        """Remember the policy of a directory, for the time when it is away."""
        ...

    def owns(self, workspace_id: str) -> bool: ...

    async def release(self, workspace_id: str) -> None:
        """Another node may become the owner. Only after everything is written and every tool has ended."""
        ...

    async def nodes(self) -> tuple[NodeInfo, ...]:
        """The servers that share the store; none if there is only this one."""
        ...

    def when_renewed(self, told: Callable[[float, float], None]) -> None:
        """Call this with how many seconds commands may go on, and since when: see `Claimed.allowed`."""
        ...

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        """Call this with each workspace that has work left and whose owner is gone."""
        ...

    async def leave(self) -> None:
        """The server takes no more workspaces."""
        ...

    def when_lost(self, told: Callable[[str], None]) -> None:
        """Call this with each workspace that is no longer ours: its turns and tools must end at once."""
        ...


class SoleOwner:
    """Of everything in its store."""

    alone = True

    def __init__(self, name: str) -> None:
        self._name = name

    def home_of(self, directory: Path) -> str:
        del directory
        return self._name

    async def claim(self, workspace_id: str) -> Claimed:
        del workspace_id
        return Claimed()

    async def note_policy(self, workspace_id: str, *, resume: bool) -> None:
        pass

    def owns(self, workspace_id: str) -> bool:
        del workspace_id
        return True

    async def release(self, workspace_id: str) -> None:
        pass

    async def nodes(self) -> tuple[NodeInfo, ...]:
        return ()

    def when_renewed(self, told: Callable[[float, float], None]) -> None:
        pass

    def when_orphaned(self, take_over: Callable[[str], Awaitable[object]]) -> None:
        pass

    async def leave(self) -> None:
        pass

    def when_lost(self, told: Callable[[str], None]) -> None:
        pass

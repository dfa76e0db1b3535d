"""Who waits for the end of which run, and which session an unfinished run belongs to."""

import asyncio


class Waits:
    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    def session_of(self, run_id: str) -> str | None:
        """The session of an unfinished run."""
        return self._sessions.get(run_id)

    def accepted(self, run_id: str, session_id: str) -> None:
        self._sessions[run_id] = session_id

    def finished(self, run_id: str) -> None:
        self._sessions.pop(run_id, None)
        self._wake(run_id)

    async def wait(self, run_id: str, timeout_s: float) -> None:
        """Until the run is finished, nobody waits any more, or the time is over."""
        if timeout_s <= 0 or run_id not in self._sessions:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run_id, []).append(future)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._forget(run_id, future)

    def close(self) -> None:
        """Let everybody go: what they wait for will not be told here."""
        for run_id in list(self._waiting):
            self._wake(run_id)

    def _wake(self, run_id: str) -> None:
        for future in self._waiting.pop(run_id, ()):
            if not future.done():
                future.set_result(None)

    def _forget(self, run_id: str, future: "asyncio.Future[None]") -> None:
        waiting = self._waiting.get(run_id, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[run_id]

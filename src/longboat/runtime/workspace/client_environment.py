"""The environments that clients sent, for the commands of their runs.

Owns them, only in memory: an environment contains secrets, so it is never stored, logged, listed or returned. Must not
know which variables are withheld from commands: `WorkspaceTools` does.
"""

from collections.abc import Mapping

from longboat.errors import BadInput

MAX_BYTES = 256 * 1024
"""For all names and values of one environment."""
MAX_NAMES = 2_000
MAX_ONE = 100_000
"""Bytes of one variable: Linux starts no program with one of 128 KB."""
MAX_CLIENTS = 64
"""How many clients' environments to keep; the oldest is forgotten first."""

Environ = Mapping[str, str]


class ClientEnvironments:
    """The environments of one workspace, until it closes."""

    def __init__(self) -> None:
        self._of_client: dict[str, Environ] = {}
        self._of_run: dict[str, Environ] = {}
        self._last: Environ | None = None

    def put(self, client_id: str | None, environ: Environ) -> None:
        """Keep a client's environment. Clients without a name share the last one sent."""
        self._last = environ
        if client_id is not None:
            self._of_client.pop(client_id, None)
            self._of_client[client_id] = environ
            if len(self._of_client) > MAX_CLIENTS:
                del self._of_client[next(iter(self._of_client))]

    def bind(self, run_id: str, client_id: str | None) -> bool:
        """Fix the environment of a run when it is submitted, whatever its client sends from another shell later.
        Returns whether the run had none before."""
        if run_id in self._of_run:
            return False
        environ = self._of_client.get(client_id or "", self._last)
        if environ is not None:
            self._of_run[run_id] = environ
        return True

    def release(self, run_id: str) -> None:
        """Forget a run that is over, or was never accepted."""
        self._of_run.pop(run_id, None)

    def of(self, run_id: str | None = None, client_id: str | None = None) -> Environ | None:
        """Return the run's environment, else its client's, else the last one sent; None if no client has sent any since
        the workspace opened."""
        own = self._of_run.get(run_id or "")
        return self._of_client.get(client_id or "", self._last) if own is None else own


def check_environ(environ: Environ) -> Environ:
    """Return the environment if it is valid. The error contains no values, and names only if they are short."""
    if len(environ) > MAX_NAMES:
        raise _bad(f"it has {len(environ):,} variables; the limit is {MAX_NAMES:,}")
    total = 0
    for name, value in environ.items():
        if not name or "=" in name or "\0" in name:
            raise _bad("a name is empty or contains = or NUL")
        if "\0" in value:
            raise _bad(f"the value of {name[:100]!r} contains NUL")
        size = len(name.encode()) + len(value.encode()) + 2
        if size > MAX_ONE:
            raise _bad(f"{name[:100]!r} is over {MAX_ONE // 1000} KB")
        total += size
    if total > MAX_BYTES:
        raise _bad(f"it is over {MAX_BYTES >> 10} KB")
    return environ


def _bad(why: str) -> BadInput:
    return BadInput(f"env is not a valid environment: {why}.", code="bad_env")

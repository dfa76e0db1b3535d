"""Where the server listens: a private unix socket, TCP on request, and the discovery file that names both for clients.

Runs before anything heavy is imported: from then on clients can connect, and wait in the backlog for an answer.
"""

import fcntl
import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import longboat
from longboat import regular_files
from longboat.config.settings import Settings
from longboat.errors import ListenError
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME, Discovery
from longboat.wire.models import PROTOCOL

_BACKLOG = 1024
_LEAVING_S = 10.0
"""How long a new server waits for one that no longer listens but is still writing and closing (B5)."""
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """The open sockets."""

    sockets: tuple[socket.socket, ...]
    url: str | None


@contextmanager
def open_listeners(settings: Settings) -> Iterator[Listeners]:
    """Listen as the settings say. On exit the sockets are closed and the unix socket's file is gone."""
    if settings.socket is None and settings.host is None:
        raise ListenError("Nothing to listen on. Pass --socket PATH, or --host and --port.")
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        if settings.socket is not None:
            sockets.append(stack.enter_context(_open_unix(settings.socket, runtime_dir=settings.runtime_dir)))
        url = None
        if settings.host is not None:
            # A node that is given no token finds it in the store, before it answers.
            bound = bind_tcp(settings.host, settings.port, token=settings.token or settings.cluster_secret)
            for sock in bound:
                stack.callback(sock.close)
            sockets += bound
            url = url_of(settings.host, bound[0].getsockname()[1])
        yield Listeners(sockets=tuple(sockets), url=url)


class Announcement:
    """The discovery file of a running server."""

    def __init__(self, path: Path, found: Discovery) -> None:
        self._path = path
        self.found = found
        write_private(path, msgspec.json.encode(found))

    def tell(self, url: str) -> None:
        """The server listens there now, too."""
        self.found = msgspec.structs.replace(self.found, url=url)
        write_private(self._path, msgspec.json.encode(self.found))

    def withdraw(self) -> None:
        """Remove the file if it is still ours."""
        if read_discovery(self._path) == self.found:
            self._path.unlink(missing_ok=True)


@contextmanager
def announce(settings: Settings, url: str | None) -> Iterator[Announcement]:
    """Write the discovery file, for this user's eyes only; remove it at exit if it is still ours."""
    found = Discovery(
        pid=os.getpid(),
        version=longboat.__version__,
        protocol=PROTOCOL,
        socket=str(settings.socket.absolute()) if settings.socket is not None else None,
        url=url,
        token=settings.token,
        data_dir=str(settings.data_dir),
        # Names that a configuration can refer to; others may hold what no JSON takes.
        keys=tuple(sorted(name for name, value in os.environ.items() if value and re.fullmatch(r"\w+", name, re.A))),
        background=settings.idle_exit_s is not None,
        started_at=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    )
    path = discovery_path(settings)
    _make_private(path.parent, fix=path.parent == settings.runtime_dir)
    announcement = Announcement(path, found)
    try:
        yield announcement
    finally:
        announcement.withdraw()


def discovery_path(settings: Settings) -> Path:
    """The path beside the socket. The user's default server has `server.json`; a server on its own socket has its own
    file; a server without a socket uses the default file only while no default server runs."""
    default = settings.runtime_dir / DISCOVERY_NAME
    if settings.socket is None:
        found = read_discovery(default)
        taken = found is not None and found.pid != os.getpid() and _is_alive(found.pid)
        return settings.runtime_dir / f"server-{os.getpid()}.json" if taken else default
    if settings.socket == settings.runtime_dir / SOCKET_NAME:
        return default
    return settings.socket.with_name(settings.socket.name + ".json")


def read_discovery(path: Path) -> Discovery | None:
    """What a discovery file says, or None when it says nothing readable."""
    try:
        return msgspec.json.decode(regular_files.read(path), type=Discovery)
    except (OSError, msgspec.MsgspecError):
        return None


@contextmanager
def _open_unix(path: Path, *, runtime_dir: Path) -> Iterator[socket.socket]:
    _make_private(path.parent, fix=path.parent == runtime_dir)
    with _held(path.with_name(path.name + ".lock"), path), socket.socket(socket.AF_UNIX) as sock:
        _clear_stale(path)
        before = os.umask(0o177)  # 0600 from its first instant, not after a chmod
        try:
            sock.bind(str(path))
        except OSError as error:
            raise ListenError(f"Cannot listen on {path}: {error.strerror or error}. Choose --socket PATH.") from error
        finally:
            os.umask(before)
        try:
            sock.listen(_BACKLOG)
            sock.setblocking(False)
            yield sock
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _held(lock_path: Path, path: Path) -> Iterator[None]:
    """Hold the socket's name while we live: if two servers start at once, one clears the stale socket and the other is
    refused. Waits for a server that is shutting down, because clients no longer reach it. The lock file stays: after
    its removal, two servers could hold it."""
    try:
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ListenError(f"Cannot write {lock_path}: {error.strerror}. Choose another --socket PATH.") from error
    try:
        end = time.monotonic() + _LEAVING_S
        while not _locked(lock):
            if _somebody_listens(path) or time.monotonic() > end:
                raise _in_use(path)
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clear_stale(path: Path) -> None:
    """Remove a socket that no server listens on. Nothing else there is ours to remove."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"{path} exists but is not a socket: remove it, or choose --socket PATH.")
    if _somebody_listens(path):
        raise _in_use(path)
    path.unlink(missing_ok=True)


def _somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.settimeout(2)
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # a full backlog or a stopped process
            return True
    return True


def _in_use(path: Path) -> ListenError:
    return ListenError(
        f"A server is already listening on {path}. Attach to it with `longboat run`, stop it with `longboat stop`, "
        "or start another with --socket PATH and --data-dir.",
        code="socket_in_use",
    )


def _make_private(directory: Path, *, fix: bool) -> None:
    """Make sure that no one else can put or swap files in the directory. `fix`: the directory is Longboat's own, so
    remove other users' rights; a directory that the user named is not ours to change."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        owners = {directory.lstat().st_uid, directory.stat().st_uid}
        if owners != {os.geteuid()}:
            raise ListenError(f"{directory} belongs to another user: choose your own directory for the socket.")
        mode = stat.S_IMODE(directory.stat().st_mode)
        if fix and mode & 0o077:
            directory.chmod(0o700)
        elif mode & 0o022:
            raise ListenError(f"Other users can write to {directory}: `chmod go-w` it, or choose --socket PATH.")
    except OSError as error:
        raise ListenError(f"Cannot use {directory} for the socket: {error.strerror}.") from error


def bind_tcp(host: str, port: int, *, token: str) -> list[socket.socket]:
    """One socket per address of the host, all on one port."""
    if not token:
        raise ListenError("TCP needs a token: set LONGBOAT_TOKEN, or leave it unset to generate one.")
    with ExitStack() as undo:
        bound: list[socket.socket] = []
        try:
            for family, address in _addresses(host):
                sock = undo.enter_context(_bind_one(family, address, bound[0].getsockname()[1] if bound else port))
                bound.append(sock)
        except OSError as error:
            raise ListenError(
                f"Cannot listen on {host} port {port}: {error.strerror or error}. Choose another --host or --port."
            ) from error
        undo.pop_all()
    return bound


def _addresses(host: str) -> list[tuple[int, str]]:
    """The addresses of a host, IPv4 first, less those that this machine does not have (::1 without IPv6)."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = sorted({(int(family), str(address[0])) for family, _, _, _, address in found})
    usable = [item for item in addresses if _is_ours(*item)]
    return usable or addresses


def _is_ours(family: int, address: str) -> bool:
    try:
        _bind_one(family, address, 0).close()
    except OSError:
        return False
    return True


def _bind_one(family: int, address: str, port: int) -> socket.socket:
    sock = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    sock.setblocking(False)
    return sock


def url_of(host: str, port: int) -> str:
    """The address for a client on this machine. "Every address" is not one to connect to."""
    callable_host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{callable_host}]:{port}" if ":" in callable_host else f"http://{callable_host}:{port}"


def write_private(path: Path, data: bytes) -> None:
    """Whole or not at all, and readable by the user alone from the start."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    draft.replace(path)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""People at the command line, recorded: real shells in a real tmux, looked at while things happen.

Owns tmux. Must not know what is typed, nor how frames are drawn.
"""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from picturing.scene import GIVE_UP_S, ROOT, Scene

LOOK_S = 0.08
LONGEST_S = 1.6
"""A frame stands no longer than this: no one wants to watch a computer think."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What all panes showed, as lines with their escapes, and for how long."""

    panes: tuple[tuple[str, ...], ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """A shell of someone."""

    who: str
    columns: int
    rows: int
    scene: Scene

    def start(self) -> None:
        environ = [f"{name}={value}" for name, value in {**self.scene.environ, "LOGNAME": self.who}.items()]
        shell = ["env", "-i", *environ, "PS1=$ ", "bash", "--norc", "--noprofile"]
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        _tmux("new-session", "-d", "-s", self.who, *size, "-c", str(self.scene.project), *shell)
        _tmux("set-option", "-t", self.who, "status", "off")

    def lines(self) -> tuple[str, ...]:
        shown = _tmux("capture-pane", "-p", "-e", "-t", self.who).splitlines()
        return tuple(shown[: self.rows])

    @property
    def text(self) -> str:
        return _tmux("capture-pane", "-p", "-t", self.who)

    async def type(self, line: str) -> None:
        for character in line:
            _tmux("send-keys", "-t", self.who, "-l", character)
            await asyncio.sleep(0.03)
        await asyncio.sleep(0.4)
        _tmux("send-keys", "-t", self.who, "Enter")

    async def shows(self, text: str) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_S):
                while text not in self.text:  # noqa: ASYNC110 — a terminal tells no one what it shows
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise SystemExit(f"pictures: {self.who} never saw {text!r}:\n{self.text}") from None


@dataclass(kw_only=True)
class Recorder:
    panes: tuple[Pane, ...]
    _seen: list[tuple[float, tuple[tuple[str, ...], ...]]] = field(default_factory=list)

    async def record(self) -> None:
        """Look until told to stop."""
        clock = asyncio.get_running_loop().time
        while True:
            shown = tuple(pane.lines() for pane in self.panes)
            if not self._seen or self._seen[-1][1] != shown:
                self._seen.append((clock(), shown))
            await asyncio.sleep(LOOK_S)

    def frames(self) -> list[Frame]:
        """All that was seen; the last stands long enough to be read."""
        ends = [at for at, _ in self._seen[1:]] + [self._seen[-1][0] + 6]
        lasts = [end - at for (at, _), end in zip(self._seen, ends, strict=True)]
        lasts[:-1] = [min(seconds, LONGEST_S) for seconds in lasts[:-1]]
        return [Frame(panes=panes, seconds=last) for (_, panes), last in zip(self._seen, lasts, strict=True)]


@asynccontextmanager
async def recording(*panes: Pane) -> AsyncIterator[Recorder]:
    """Record while the block runs."""
    if shutil.which("tmux") is None:
        raise SystemExit("pictures: needs tmux: apt install tmux")
    recorder = Recorder(panes=panes)
    try:
        for pane in panes:
            pane.start()
            await pane.shows("$")
        looking = asyncio.create_task(recorder.record())
        try:
            yield recorder
        finally:
            looking.cancel()
            await asyncio.wait([looking])
    finally:
        _tmux("kill-server")


def _tmux(*arguments: str) -> str:
    """Of a server of our own: no one's other sessions are touched."""
    command = ["tmux", "-S", str(ROOT / "tmux"), "-f", "/dev/null", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

"""`longboat` in a tmux of its own: a real terminal, of which the test reads the screen, the title and the clipboard."""

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from cli_home import GIVE_UP_S, LONGBOAT, Home

from secrecy import check_for_secrets

EVERY_S = 0.03
NUMBERS = count()


class Pane:
    def __init__(self, socket: Path, environ: dict[str, str]) -> None:
        self._socket = socket
        self._environ = environ

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self._environ, check=True, capture_output=True, text=True).stdout

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "0", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-t", "0", "-l", text)

    def say(self, text: str) -> None:
        """A prompt, once the app has heard all of it."""
        self.type(text)
        self.until(text[-20:])
        self.press("Enter")

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "0")

    @property
    def lines(self) -> list[str]:
        return self.screen.splitlines()

    def told(self, what: str) -> str:
        """A variable of tmux."""
        return self.tmux("display-message", "-p", "-t", "0", f"#{{{what}}}").strip()

    def until(self, *wanted: str, gone: str = "") -> str:
        """The screen, once it holds all of these and not that."""
        return self.until_so(
            lambda screen: all(text in screen for text in wanted) and not (gone and gone in screen),
            f"{wanted!r} without {gone!r}",
        )

    def until_so(self, true: Callable[[str], bool], told: str) -> str:
        """The screen, once this is true of it."""
        end = time.monotonic() + GIVE_UP_S
        while True:
            screen = self.screen
            if true(screen):
                check_for_secrets(screen, "the terminal app")
                return screen
            assert time.monotonic() < end, f"never {told}, but:\n{screen}"
            time.sleep(EVERY_S)


@contextmanager
def pane(home: Home, *arguments: str, cwd: Path, size: tuple[int, int] = (80, 24), user: str = "ann") -> Iterator[Pane]:
    """`longboat ARGUMENTS`, and below it what it said at its end with its exit code."""
    socket = home.path / f"{user}{next(NUMBERS)}.tmux"  # one that was ended may still be there
    # As some shells, and pytest's workers, have it in the environment: the size is the terminal's all the same.
    elsewhere = {"COLUMNS": "33", "LINES": "7"}
    found = Pane(socket, home.environ | elsewhere | {"LOGNAME": user, "TERM": "xterm-256color", "LANG": "C.UTF-8"})
    command = shlex.join([*LONGBOAT, *arguments])
    width, height = map(str, size)
    found.tmux(
        *("new-session", "-d", "-x", width, "-y", height, "-c", str(cwd), f"{command}; echo ended $?; exec cat"),
        *(";", "set", "-g", "set-clipboard", "on", ";", "set", "-g", "status", "off"),
        *(";", "resize-window", "-x", width, "-y", height),
    )
    try:
        yield found
    finally:
        found.tmux("kill-server")

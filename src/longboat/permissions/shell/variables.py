"""Which environment variables decide what a script does. Their values could be inferred from the result.

`[[ $TOKEN == a* ]] && echo yes` shows the value of a variable letter by letter, although no command prints it. Owns
which variables the script has certainly set itself, from what, and which values are compared. Must not know how a
script is parsed, nor what is allowed.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_PUBLIC = re.compile(
    r"""[-!#$?]|BASH|BASHPID|BASH_VERSION|CI|COLUMNS|EUID|GITHUB_ACTIONS|HOME|HOSTNAME|HOSTTYPE|LANG|LC_ALL|LC_CTYPE
    |LINENO|LINES|LOGNAME|MACHTYPE|NODE_ENV|NO_COLOR|OLDPWD|OSTYPE|PATH|PPID|PWD|RANDOM|SECONDS|SHELL|SHLVL|TERM|TMPDIR
    |UID|USER|VIRTUAL_ENV""",
    re.VERBOSE,
)
"""Variables whose values are not secret."""

_NAME = re.compile(r"\$\{?#?([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")


def variable_in(source: str) -> str:
    """The name in `$x`, `${x}`, `${#x}` or `${x:-y}`."""
    found = _NAME.match(source)
    return found.group(1) if found else ""


class Values:
    def __init__(self) -> None:
        self._set: set[str] = set()
        """The variables that the script has certainly set at this point."""
        self._trail: list[str] = []
        """The same names, in the order in which they were set."""
        self._from: list[tuple[str, tuple[str, ...]]] = []
        """Each variable that was set, and the variables in its value."""
        self._unknown: set[str] = set()
        """Those that may at any time have got the value of a variable that the script did not set."""
        self._compared: list[tuple[str, str]] = []
        """What was compared as it is written, and its name, where the script has set it."""
        self._decisive: list[str] = []
        """What was compared where the script has not set it."""

    @contextmanager
    def branch(self) -> Iterator[None]:
        """For commands that may not run, or run in a shell of their own: what they set may be unset behind them."""
        start = len(self._trail)
        yield
        self.back_to(start)

    def here(self) -> int:
        """What `back_to()` takes."""
        return len(self._trail)

    def back_to(self, start: int) -> None:
        """Forget that what was set since then surely is."""
        self._set.difference_update(self._trail[start:])
        del self._trail[start:]

    def assign(self, name: str, sources: Sequence[str], *, appends: bool = False) -> None:
        """`sources` are the variables in the value, as they are written."""
        used = [*map(variable_in, sources), *([name] if appends else [])]
        if all(each in self._set or _PUBLIC.fullmatch(each) for each in used):
            self._from.append((name, tuple(used)))
        else:
            self._unknown.add(name)
        if name not in self._set:
            self._set.add(name)
            self._trail.append(name)

    def set_by_default(self, name: str) -> None:
        """`${name:=…}`."""
        self._unknown.add(name)

    def compare(self, sources: Sequence[str]) -> None:
        """What the script does from here on depends on these."""
        for source in sources:
            name = variable_in(source)
            if name in self._set:
                self._compared.append((source, name))
            elif not _PUBLIC.fullmatch(name):
                self._decisive.append(source)

    def look_up(self, source: str) -> None:
        """A file is looked for whose name is only known when it runs."""
        self._decisive.append(source)

    def lists(self) -> tuple[list[tuple[str, str]], list[str]]:
        """What was compared so far."""
        return self._compared, self._decisive

    def decisive(self) -> list[str]:
        """What was compared and may come from the environment, as it is written."""
        unknown = self._spread()
        return [*self._decisive, *(source for source, name in self._compared if name in unknown)]

    def _spread(self) -> set[str]:
        """With what was set from the unknown ones, wherever: a loop may come back to it."""
        goes_to: dict[str, set[str]] = {}
        for name, used in self._from:
            for each in used:
                goes_to.setdefault(each, set()).add(name)
        unknown: set[str] = set()
        waiting = list(self._unknown)
        while waiting:
            name = waiting.pop()
            if name not in unknown:
                unknown.add(name)
                waiting += goes_to.get(name, ())
        return unknown

"""The date and the state of the repository, for the model: in the system prompt as they were when the session began,
and with a later prompt if they have changed.

The system prompt stays the same: after any change there, the provider would have to read the whole conversation again.
A note stays with its prompt for all later turns, word for word.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from longboat.context.git_head import Head
from longboat.runtime.workspace.git_changes import changed_files
from longboat.tools.files.paths import printable

MAX_NAMED = 20
"""How many files a note names."""
STATUS_S = 0.5
"""How long git may look for uncommitted changes; after that, the note leaves them out."""
_CHANGES = "\nUncommitted changes: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    directory: Path
    date: str
    head: Head | None

    @property
    def brief(self) -> str:
        if self.head is None:
            git = "no repository"
        else:
            git = f"branch {self.head.name}" if self.head.is_branch else f"detached at {self.head.name}"
        return f"Date: {self.date}\nGit: {printable(git)}"

    def is_told(self, told: Sequence[str]) -> bool:
        """Whether the model's latest information says the same."""
        return bool(told) and told[-1].split(_CHANGES, 1)[0] == self.brief

    async def describe(self, environ: Callable[[], Mapping[str, str]], *, first: bool) -> str:
        """Write the note. `first`: with the uncommitted changes, for which git gets the environment."""
        changed: tuple[str, ...] = ()
        if first and self.head is not None:
            changed = await changed_files(self.directory, environ(), timeout_s=STATUS_S)
        return f"{self.brief}{_CHANGES}{_listed(changed)}" if changed else self.brief


def surroundings_now(directory: Path, head: Head | None) -> Surroundings:
    """With today's date."""
    return Surroundings(directory=directory, date=date.today().isoformat(), head=head)


def _listed(paths: Sequence[str]) -> str:
    named = [printable(path) for path in paths[:MAX_NAMED]]
    return ", ".join([*named, f"and {len(paths) - MAX_NAMED} more"] if len(paths) > MAX_NAMED else named)

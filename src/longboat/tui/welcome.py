"""The screen before the first prompt: version, model, directory and branch, recent sessions, suggestions, keys.

Must not know the server: `show` takes all of it, and callables act on a choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from longboat import __version__
from longboat.tui.content import content, format_count, line, one_line
from longboat.tui.dialogs.formatting import ago, now
from longboat.tui.dialogs.frame import KeysLine
from longboat.tui.dialogs.sessions import FAILED
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.listings import Suggestion
from longboat.wire.models import Session

RECENT = 5
"""The most sessions listed."""
# The palette and the leader key are on the border of the prompt.
KEYS = (
    ("ctrl+s", "sessions"),
    ("ctrl+l", "model"),
    ("tab", "choose above"),
    ("f1", "help"),
)
_SESSION, _PROMPT = "session:", "prompt:"


@dataclass(frozen=True, slots=True, kw_only=True)
class WelcomeState:
    path: str = ""
    branch: str = ""
    model: str = ""
    window: int = 0
    """The model's context window in tokens; 0 if unknown."""
    problem: str = ""
    """What to do before a prompt can be answered; empty if a model is ready."""
    sessions: tuple[Session, ...] = ()
    """Newest first."""
    suggestions: tuple[Suggestion, ...] = ()


class Welcome(Vertical):
    """tab moves the focus to its list; enter opens the session, or puts the suggestion into the prompt."""

    DEFAULT_CSS = """
    Welcome {
        height: auto; margin: 0 0 1 1;
        & > Static { height: auto; }
        & > #begin {
            height: auto; max-height: 100%; border: none; padding: 0; margin: 1 0; background: transparent;
            text-wrap: nowrap; text-overflow: ellipsis;
            &:focus { border: none; }
        }
        & > #welcome-keys { color: $text-muted; }
        &.-tight { margin: 0; & > #begin { margin: 0; } }
    }
    """

    def __init__(
        self,
        *,
        open_session: Callable[[str], None],
        put_prompt: Callable[[str], None],
        clock: Callable[[], datetime] = now,
    ) -> None:
        super().__init__(id="welcome")
        self.clock = clock
        self._open_session = open_session
        self._put_prompt = put_prompt
        self._state = WelcomeState()
        self._room = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="about", markup=False)
        yield Listing(id="begin", markup=False)
        yield KeysLine(*KEYS, id="welcome-keys")

    def on_mount(self) -> None:
        self._draw()

    def show(self, state: WelcomeState) -> None:
        if state != self._state:
            self._state = state
            self._draw()

    def fit(self, rows: int) -> None:
        """Show as much as fits into these rows, the most useful first."""
        if rows != self._room:
            self._room = rows
            self._draw()

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        tight = self._room < 14
        self.set_class(tight, "-tight")
        self.query_one("#about", Static).update(Content("\n").join(_about(self._state, self.size.width)))
        self.query_one("#welcome-keys").display = self._room >= 11
        listing = self.query_one("#begin", OptionList)
        chosen = listing.highlighted_option.id if listing.highlighted_option is not None else None
        listing.set_options(self._options(tight=tight))
        listing.display = bool(listing.option_count)
        if chosen is not None and chosen in {option.id for option in listing.options}:
            listing.highlighted = listing.get_option_index(chosen)

    def _options(self, *, tight: bool) -> list[Option]:
        room = max(2, min(RECENT, self._room - 13))
        sessions = [_session(each, self.clock()) for each in self._state.sessions[:room]]
        prompts = [
            Option(Content.assemble(("› ", "$text-accent"), line(each.title, width=80)), id=f"{_PROMPT}{place}")
            for place, each in enumerate(self._state.suggestions)
            if not self._state.problem  # no one would answer it
        ]
        return [
            *_headed("Recent sessions", sessions, tight=tight),
            *_headed("\nTry" if sessions else "Try", prompts, tight=tight),
        ]

    def on_descendant_focus(self) -> None:
        listing = self.query_one("#begin", OptionList)
        if listing.highlighted is None:
            listing.action_first()

    def on_resize(self) -> None:
        self._draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        chosen = event.option.id or ""
        if chosen.startswith(_SESSION):
            self._open_session(chosen.removeprefix(_SESSION))
        elif chosen.startswith(_PROMPT):
            self._put_prompt(self._state.suggestions[int(chosen.removeprefix(_PROMPT))].prompt)


def _about(state: WelcomeState, width: int) -> list[Content]:
    rows = [Content.assemble(("Longboat ", "bold $text-primary"), (__version__, FAINT))]
    if state.problem:
        rows += [Content.styled("No model available", "bold $text-warning"), content(state.problem, "$text-warning")]
        rows.append(Content.assemble(("/connect", "bold $text-accent"), " connects a provider."))
    elif state.model:
        window = f"  {format_count(state.window)} context" if state.window else ""
        rows.append(Content.assemble(line(state.model, width=80), (window, FAINT)))
    branch = f"  {one_line(state.branch, 30)}" if state.branch else ""
    path, room = one_line(state.path), max(10, width - len(branch) - 2)
    rows.append(Content.assemble(path if len(path) <= room else "…" + path[1 - room :], (branch, "$text-accent")))
    return rows


def _headed(heading: str, options: Sequence[Option], *, tight: bool) -> list[Option]:
    if not options or tight:
        return list(options)
    return [Option(Content.styled(heading, "bold $text-primary"), disabled=True), *options]


def _session(session: Session, at: datetime) -> Option:
    title = one_line(session.title, 80) or "(untitled)"
    failed = "" if session.busy else FAILED.get(session.last_outcome, "")
    state = " · working" if session.busy else " ·" if failed else ""
    row = Content.assemble(
        ("● " if session.busy else "  ", "$text-success"),
        title,
        (f"  {ago(session.updated_at, at)}{state}", FAINT),
        (failed, "$text-error"),
    )
    return Option(row, id=f"{_SESSION}{session.id}")

"""The permission dialog: the tool, what it would do, why it needs approval, and exactly what each answer allows."""

import time
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from longboat.tui.dialogs.asks import Gone, tell, told_permission
from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import GRACE_S, HIGH, Clock, Dialog, keys_line
from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.asks import Mark, Permission, PermissionAnswer
from longboat.wire.plain import plain, plain_line

MAX_REASON = 10_000


TINY, TINIEST = 15, 10
"""Below these numbers of rows, parts of the dialog do not fit, and the diff does not fit at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecision:
    answer: PermissionAnswer
    wide: bool = False
    reason: str = ""


class PermissionDialog(Dialog[PermissionDecision | Gone]):
    """Ends with a decision, with `Gone`, or with None: decide later. A dangerous call takes a typed yes."""

    HEADING = "Approval needed"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,o", "answer('once')", "Once"),
        Binding("s", "answer('session')", "This session"),
        Binding("a", "answer('always')", "Always"),
        Binding("w", "wide", "Wider rules"),
        Binding("d", "deny", "Deny"),
        Binding("pageup", "look(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "look(1)", "Down", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PermissionDialog {
        #about { height: auto; }
        #head { max-height: 2; }
        #title { text-style: bold; max-height: 3; &.-all { max-height: 100%; } }
        #command { background: $panel; padding: 0 1; }
        #danger { color: $text-error; text-style: bold; }
        #why { color: $text-warning; max-height: 4; }
        #detail { background: $panel; padding: 0 1; }
        &.-high #about > * { margin-bottom: 1; }
        &.-dangerous > .box { border: heavy $error; border-title-color: $text-error; }
        DiffView { height: auto; max-height: 30vh; }  /* until it is known what the others leave */
        &.-short DiffView { scrollbar-size-horizontal: 0; }
        #answers { height: auto; border: none; padding: 0; background: $surface; &:focus { border: none; } }
        #answers { text-wrap: nowrap; text-overflow: ellipsis; }
        #reason, #confirm { display: none; }
        &.-denying #reason { display: block; }
        &.-confirming #confirm { display: block; }
        &.-denying.-short #answers, &.-confirming.-short #answers { display: none; }
        &.-tiny .keys { display: none; }
        &.-tiny > .box { max-height: 100%; }
    }
    """

    def __init__(
        self,
        permission: Permission,
        *,
        asked_by: str = "",
        position: int = 1,
        of: int = 1,
        grace_s: float = GRACE_S,
        clock: Clock = time.monotonic,
    ) -> None:
        """`asked_by`: who sent the prompt; `position` and `of`: the place among the pending requests."""
        super().__init__(grace_s=grace_s, clock=clock)
        self.permission = permission
        self._asked_by = asked_by
        self._position = position
        self._of = of
        self._wide = False
        self._unconfirmed = PermissionAnswer.ONCE
        """The answer to a dangerous call that still has to be confirmed with yes."""
        self.set_class(_is_diff(permission.detail), "-diff")
        self.set_class(bool(permission.danger), "-dangerous")
        self.yielding = "#diff" if _is_diff(permission.detail) else "#about"

    def fit(self) -> None:
        """Leave room for a diff: the part above it gets at most a third. In rows, as in `_fit`. On a very small screen
        the answers come first and can be scrolled."""
        if not self.is_open:
            return
        height = self.size.height
        tiny = height < TINY
        self.set_class(tiny, "-tiny")
        self.query_one("#answers").styles.max_height = max(3, height - 8) if tiny else None
        if self.has_class("-diff"):
            self.query_one("#diff").display = height >= TINIEST
            tenths = 2 if height < HIGH else 3
            self.query_one("#about").styles.max_height = 2 if tiny else max(3, height * tenths // 10)
        elif tiny:
            self.query_one("#about").styles.max_height = 2
        super().fit()

    def body(self) -> list[Widget]:
        permission = self.permission
        is_diff = self.has_class("-diff")
        beyond = permission.beyond_title
        about: list[Widget] = [Static(self._heading(), id="head", markup=False)]
        if permission.is_command:
            about.append(Static(_marked_command(permission), id="command", markup=False))
        else:
            about.append(Static(plain(permission.title), id="title", markup=False, classes=_of_title(permission)))
        if permission.danger:
            about.append(Static(f"⚠ Dangerous. {plain_line(permission.danger)}", id="danger", markup=False))
        if not (permission.danger and permission.is_command):
            about.append(Static(plain(permission.why), id="why", markup=False))
        if not is_diff and not permission.is_command and beyond:
            about.append(Static(plain(beyond), id="detail", markup=False))
        if permission.noted_parts:
            about.append(Static(_told_parts(permission), id="parts", markup=False))
        about.append(Static("", id="rules", markup=False))
        pane = VerticalScroll(*about, id="about", can_focus=False)
        diff = [DiffView(permission.detail, permission.argument, id="diff")] if is_diff else []
        return [
            pane,
            *diff,
            Listing(id="answers", markup=False),
            Field(placeholder="What to do instead (optional). enter deny, esc back", id="reason"),
            Field(id="confirm"),
            keys_line(("enter", "select"), ("PgUp/PgDn", "scroll"), ("esc", "decide later")),
        ]

    def _heading(self) -> Content:
        parts = [plain_line(self.permission.tool)]
        if self._asked_by:
            parts.append(f"for {plain_line(self._asked_by)}")
        if self._of > 1:
            parts.append(f"{self._position} of {self._of}")
        return Content.styled(" · ".join(parts), FAINT)

    def on_mount(self) -> None:
        reason = self.query_one("#reason", Input)
        reason.max_length = MAX_REASON
        self._draw()
        if self.permission.danger:  # enter alone must not allow it
            answers = self.query_one("#answers", OptionList)
            answers.highlighted = answers.option_count - 1
        self.query_one("#answers").focus()

    @property
    def _rules(self) -> tuple[str, ...]:
        return self.permission.told_rules(wide=self._wide)

    def _draw(self) -> None:
        self.query_one("#rules", Static).update(self._told_rules())
        answers = self.query_one("#answers", OptionList)
        at = answers.highlighted
        answers.set_options(self._options())
        answers.highlighted = min(at or 0, answers.option_count - 1)
        self.fit()

    def _told_rules(self) -> Content:
        if not self._rules:
            return Content.styled("This call can only be allowed once.", FAINT)
        wider = " (wider)" if self._wide else ""
        told = f"“Allow for this session” and “Always allow” will allow{wider}:"
        lines: list[Content | tuple[str, str] | str] = [(told, FAINT)]
        lines += [f"\n  {plain_line(rule)}" for rule in self._rules]
        return Content.assemble(*lines)

    def _options(self) -> list[Option]:
        options = [_option("once", "y", "Allow once")]
        if self.permission.grant:
            options += [
                _option("session", "s", "Allow for this session"),
                _option("always", "a", f"Always allow (in {self._file})"),
            ]
        if self.permission.wide:
            options.append(_option("wide", "w", f"[{'x' if self._wide else ' '}] Use the wider rules"))
        return [*options, _option("deny", "d", "Deny, and say what to do instead")]

    @property
    def _file(self) -> str:
        return plain_line(self.permission.rules_file) or "longboat.json"

    @on(OptionList.OptionSelected, "#answers")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        match event.option_id:
            case "wide":
                self.action_wide()
            case "deny":
                self.action_deny()
            case str(answer):
                self.action_answer(answer)

    def action_answer(self, answer: str) -> None:
        if answer != "once" and not self.permission.grant:
            self.complain("This call can only be allowed once.")
        elif self.permission.danger:
            self._unconfirmed = PermissionAnswer(answer)
            field = self.query_one("#confirm", Input)
            field.value, field.placeholder = "", f"{_CONFIRM[self._unconfirmed]} esc back"
            self._ask("#confirm")
        else:
            self._allow(PermissionAnswer(answer))

    def _allow(self, answer: PermissionAnswer) -> None:
        self.end(PermissionDecision(answer=answer, wide=self._wide and answer is not PermissionAnswer.ONCE))

    @on(Input.Submitted, "#confirm")
    def _confirmed(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() == "yes":
            self._allow(self._unconfirmed)
        else:
            self.complain("Not allowed yet: type yes, or press esc to go back.")

    def action_wide(self) -> None:
        if self.permission.wide:
            self._wide = not self._wide
            self._draw()
            self.when_laid_out(lambda: self.query_one("#about").scroll_end(animate=False))  # to where the rules are

    def action_deny(self) -> None:
        self._ask("#reason")

    def _ask(self, part: str) -> None:
        """Ask for the reason or the confirmation, or go back to the answers."""
        self.set_class(part == "#reason", "-denying")
        self.set_class(part == "#confirm", "-confirming")
        self.query_one(part).focus()
        self.complain("")

    @on(Input.Submitted, "#reason")
    def _denied(self, event: Input.Submitted) -> None:
        self.end(PermissionDecision(answer=PermissionAnswer.DENY, reason=event.value.strip()))

    def action_later(self) -> None:
        if self.has_class("-denying") or self.has_class("-confirming"):
            self._ask("#answers")
        else:
            super().action_later()

    def action_look(self, pages: int) -> None:
        """Scroll the description, then the diff, wherever the focus is."""
        panes: list[Widget] = [self.query_one("#about"), *self.query("#diff")]
        for pane in panes if pages > 0 else reversed(panes):
            if pane.scroll_y < pane.max_scroll_y if pages > 0 else pane.scroll_y > 0:
                pane.scroll_relative(y=pages * max(1, pane.size.height - 1), animate=False)
                return

    def withdrawn(self, answered_by: str | None, answer: PermissionAnswer | None) -> None:
        """Close the dialog: someone else answered, or the run ended (no answer)."""
        if not self.is_over:
            sentence = told_permission(self.permission.title, answered_by, answer)
            tell(self, sentence)
            self.end(Gone(sentence=sentence))


def _of_title(permission: Permission) -> str:
    """The CSS class of the title. A title that has information no other line has is never cut."""
    return "" if permission.beyond_title == (permission.detail or permission.argument).strip() else "-all"


_CONFIRM = {
    PermissionAnswer.ONCE: "Type yes and press enter to allow it once.",
    PermissionAnswer.SESSION: "Type yes and press enter to allow it for this session.",
    PermissionAnswer.ALWAYS: "Type yes and press enter to always allow it.",
}
_MARKS = {Mark.NONE: "", Mark.ASKED: "underline", Mark.DANGEROUS: "bold underline reverse $text-error"}


def _marked_command(permission: Permission) -> Content:
    """The command, once, with its risky parts marked, and what is said about where it runs."""
    pieces = [(plain(text), _MARKS[mark]) for text, mark in permission.pieces()]
    return Content.assemble(*pieces, (f"\n{plain(permission.notes)}" if permission.notes else "", FAINT))


def _told_parts(permission: Permission) -> Content:
    """A line for each part of the command with a reason of its own."""
    lines = [(plain_line(part.describe()), "$text-warning") for part in permission.noted_parts]
    if permission.more_parts:
        lines.append((f"… and {permission.more_parts} more", FAINT))
    return Content("\n").join(Content.styled(*line) for line in lines)


def _option(option_id: str, key: str, what: str) -> Option:
    return Option(Content.assemble((key, "bold"), f"  {what}"), id=option_id)


def _is_diff(detail: str) -> bool:
    return detail.startswith(("--- ", "@@ -", "diff --git "))

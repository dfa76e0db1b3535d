"""Completion of `@` files and `/` commands: finding the word to complete, and the list above the composer.

Must not know where the choices come from.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from textual.content import Content
from textual.widgets.option_list import Option

from longboat.tui.content import line
from longboat.tui.textual_fixes import Listing
from longboat.wire.plain import fold_case

_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_COMMAND = re.compile(r"^/([\w:.-]*)$")


class Sort(StrEnum):
    FILE = "@"
    COMMAND = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A word that can be completed; it starts `length` characters before the cursor."""

    sort: Sort
    query: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    text: str
    """The text inserted into the prompt."""
    description: str = ""
    whole: bool = False
    """A command without arguments: enter runs it."""
    type_in_full: bool = False
    """A command that should not run by mistake: a part of its name is not enough."""


def find_wanted(before_cursor: str, *, first_line: bool) -> Wanted | None:
    """The word to complete in the line up to the cursor."""
    if first_line and (match := _COMMAND.search(before_cursor)):
        return Wanted(sort=Sort.COMMAND, query=match[1], length=len(match[0]))
    if match := _FILE.search(before_cursor):
        return Wanted(sort=Sort.FILE, query=match[1], length=len(match[1]) + 1)
    return None


def matching(choices: list[Choice], query: str) -> list[Choice]:
    """The choices whose name starts with the query, then those that contain it."""
    query = fold_case(query)
    names = [(choice, _name(choice)) for choice in choices]
    begin = [choice for choice, name in names if name.startswith(query)]
    return begin + [choice for choice, name in names if query in name and not name.startswith(query)]


def _name(choice: Choice) -> str:
    return fold_case(choice.text).lstrip("/@")


class Choices(Listing):
    """The list of completions. It never has the focus: the composer moves the highlight."""

    DEFAULT_CSS = """
    Choices {
        display: none; height: auto; max-height: 8; margin: 0 1; border: none; padding: 0 1; background: $panel;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__(id="choices", markup=False)
        self.can_focus = False
        self._choices: list[Choice] = []
        self._asked: Wanted | None = None
        self._moved = False

    @property
    def is_open(self) -> bool:
        return bool(self._choices)

    @property
    def chosen(self) -> Choice | None:
        return self._choices[self.highlighted] if self.highlighted is not None and self._choices else None

    def chosen_for(self, word: Wanted | None) -> Choice | None:
        """The highlighted choice, if the list is for this word and not for an earlier one."""
        return self.chosen if word is not None and word == self._asked else None

    @property
    def is_meant(self) -> bool:
        """Whether the highlighted choice is clearly intended: the person moved to it, or typed a prefix that only its
        name has."""
        if self._moved or self.chosen is None or self._asked is None:
            return self._moved
        begun = [choice for choice in self._choices if _name(choice).startswith(fold_case(self._asked.query))]
        return begun == [self.chosen] and not self.chosen.type_in_full

    def action_cursor_up(self) -> None:
        self._moved = True
        super().action_cursor_up()

    def action_cursor_down(self) -> None:
        self._moved = True
        super().action_cursor_down()

    def offer(self, asked: Wanted | None, choices: list[Choice]) -> None:
        """Show these choices; an empty list closes it."""
        self._asked, self._choices, self._moved = asked, choices, False
        self.clear_options()
        self.add_options(Option(_prompt(choice)) for choice in choices)
        self.highlighted = 0 if choices else None
        self.display = bool(choices)

    def close(self) -> None:
        if self._choices:
            self.offer(None, [])


def _prompt(choice: Choice) -> Content:
    description = line(choice.description, "$text-muted", width=100)
    return Content("  ").join([line(choice.text, "bold", width=120), description])

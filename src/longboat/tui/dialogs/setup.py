"""The dialogs of the set-up: pick a provider, enter its key and have it tested, choose the default model."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from longboat.errors import LongboatError
from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.formatting import tokens
from longboat.tui.dialogs.frame import Dialog, ListDialog, keys_line
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.amounts import price_text
from longboat.wire.listings import ModelInfo
from longboat.wire.plain import plain, plain_line
from longboat.wire.providers import Provider, ProviderCheck

Item = TypeVar("Item")

SOURCES = {
    "environment": "key from the environment",
    "stored": "stored key",
    "configuration": "set in longboat.json",
    "running": "running on this machine",
    "local": "installed",
    None: "",
}


class SetupList(ListDialog[Item]):
    """A list to choose from, with a filter."""

    DEFAULT_CSS = """
    SetupList {
        & > .box { max-height: 26; }
        #about { height: auto; max-height: 3; }
    }
    """
    ABOUT = ""

    def __init__(self, items: Sequence[Item], *, grace_s: float = 0.0) -> None:
        super().__init__(grace_s=grace_s)
        self._items = items
        self._shown: list[Item] = []

    def body(self) -> list[Widget]:
        return [
            Static(self.ABOUT, id="about", markup=False),
            Field(placeholder="Filter", id="filter"),
            Listing(id="items", markup=False),
            keys_line(("enter", "select"), ("esc", "cancel")),
        ]

    def on_mount(self) -> None:
        super().on_mount()
        self._draw("")
        self.query_one("#filter").focus()

    def name_of(self, item: Item) -> str:
        raise NotImplementedError

    def row_of(self, item: Item) -> Content:
        raise NotImplementedError

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        self._draw(event.value)

    def _draw(self, text: str) -> None:
        words = text.casefold().split()
        self._shown = [item for item in self._items if all(word in self.name_of(item).casefold() for word in words)]
        rows = [Option(self.row_of(item)) for item in self._shown]
        self.listing.set_options(rows or [Option("Nothing found.", disabled=True)])
        if rows:
            self.listing.highlighted = 0

    @on(Input.Submitted, "#filter")
    @on(OptionList.OptionSelected, "#items")
    def _taken(self) -> None:
        at = self.listing.highlighted
        if at is not None and self._shown:
            self.end(self._shown[at])


class ProviderPicker(SetupList[Provider]):
    """Connected providers come first."""

    HEADING = "Connect a provider"
    ABOUT = "Choose a provider."

    def name_of(self, item: Provider) -> str:
        return f"{item.name} {item.id}"

    def row_of(self, item: Provider) -> Content:
        if item.connected:
            return Content.assemble("✓ ", plain_line(item.name), (f"  {SOURCES[item.source]}", FAINT))
        return Content.assemble("  ", plain_line(item.name))


class SetupModelPicker(SetupList[ModelInfo]):
    """Recommended models come first."""

    HEADING = "Choose the default model"
    ABOUT = "The test passed. Choose the model for new prompts."

    def name_of(self, item: ModelInfo) -> str:
        return item.name

    def row_of(self, item: ModelInfo) -> Content:
        notes = (price_text(item.price), f"{tokens(item.context_window)} context" if item.context_window else "")
        return Content.assemble(plain_line(item.name), (f"  {', '.join(filter(None, notes))}", FAINT))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingKey:
    """What was entered, and what the provider answered: it works."""

    api_key: str | None
    base_url: str | None
    found: ProviderCheck

    def __repr__(self) -> str:
        return "WorkingKey(…)"  # not the key, in a log or a traceback


Check = Callable[[str | None, str | None], Awaitable[ProviderCheck]]
"""Tries a key and an address."""


class KeyDialog(Dialog[WorkingKey]):
    """Asks for the key and, where it is needed, the address. Ends only when the provider has accepted them."""

    HEADING = "API key"
    yielding = "#about"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "test", "Test", show=False)]
    DEFAULT_CSS = """
    KeyDialog {
        & > .box { max-width: 80; }
        #about { height: auto; }
        #progress { height: auto; color: $text-muted; }
    }
    """

    def __init__(self, provider: Provider, check: Check) -> None:
        super().__init__()
        self._provider = provider
        self._check = check
        self._testing = False

    def body(self) -> list[Widget]:
        fields: list[Widget] = []
        if self._asks_url:
            fields.append(Static("Base URL", markup=False))
            fields.append(Field(plain_line(self._provider.base_url or ""), placeholder="http://…/v1", id="url"))
        if self._provider.key != "none":
            fields.append(Static(self._key_label(), markup=False))
            fields.append(Field(password=True, placeholder="Paste the key", id="key"))
        return [
            Static(plain(self._about()), id="about", markup=False),
            *fields,
            Static("", id="progress", markup=False),
            keys_line(("enter", "test"), ("esc", "back")),
        ]

    def on_mount(self) -> None:
        super().on_mount()
        if fields := list(self.query(Field)):
            fields[-1 if self._provider.base_url else 0].focus()
        else:
            self.action_test()

    @property
    def _asks_url(self) -> bool:
        return self._provider.url != "none"

    def _about(self) -> str:
        page = f"\nCreate an API key at {self._provider.key_page}" if self._provider.key_page else ""
        return f"{self._provider.name}{page}"

    def _key_label(self) -> str:
        if self._provider.connected:
            return "API key (leave empty to keep the current setting)"
        if self._provider.key == "optional":
            return "API key (leave empty if none is needed)"
        return "API key"

    def _entered(self, name: str) -> str | None:
        found = self.query(f"#{name}").results(Input)
        return next((field.value.strip() for field in found), "") or None

    @on(Input.Submitted)
    def action_test(self) -> None:
        if not self._testing:
            self._testing = True
            self.complain("")
            self.query_one("#progress", Static).update("Testing…")
            self._test(self._entered("key"), self._entered("url"))

    @work(name="test")
    async def _test(self, api_key: str | None, base_url: str | None) -> None:
        try:
            found = await self._check(api_key, base_url)
            problem = "" if found.ok else found.problem or "The test failed. Check the key and the base URL."
        except LongboatError as error:
            problem = error.message
        finally:
            self._testing = False
        if not self.is_open:
            return
        self.query_one("#progress", Static).update("")
        if problem:
            self.complain(plain(problem))
        else:
            self.end(WorkingKey(api_key=api_key, base_url=base_url and found.base_url, found=found))

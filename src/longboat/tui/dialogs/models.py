"""The dialog for choosing the model and the reasoning effort."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.formatting import tokens
from longboat.tui.dialogs.frame import ListDialog, keys_line
from longboat.tui.dialogs.one_of import OneOf
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.amounts import price_text
from longboat.wire.listings import ModelInfo, ModelPage
from longboat.wire.plain import plain, plain_line

EFFORTS = (None, "low", "medium", "high")
UNFOLD = "unfold"
"""The row that stands for the models that are not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    model: str | None
    """None: the server's default."""
    effort: str | None
    """None: the model's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectWanted:
    """The person wants a provider that is not connected yet."""


class ModelPicker(ListDialog[ModelChoice | ConnectWanted]):
    """Models that are ready, with their prices. The others are folded away until they are asked for or searched for;
    they say what is missing."""

    HEADING = "Model"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "effort", "Effort", priority=True),
        Binding("ctrl+n", "connect", "Connect", priority=True),
    ]
    DEFAULT_CSS = """
    ModelPicker {
        & > .box { max-height: 30; }
    }
    """

    def __init__(self, models: ModelPage, *, current: str | None = None, effort: str | None = None) -> None:
        super().__init__()
        self._models = models
        self._current = current
        self._effort = EFFORTS.index(effort) if effort in EFFORTS else 0
        self._by_place: list[ModelInfo | None] = []
        """None is the default."""
        self._unfolded = False

    def body(self) -> list[Widget]:
        return [
            Field(placeholder="Filter", id="filter"),
            Listing(id="models", markup=False),
            OneOf("effort: ", self._efforts(None), index=self._effort, id="effort"),
            keys_line(("enter", "select"), ("ctrl+t", "effort"), ("ctrl+n", "connect a provider"), ("esc", "cancel")),
        ]

    def on_mount(self) -> None:
        if self._models.problem:
            self.complain(plain(self._models.problem))
        self._draw("", self._current)
        self.query_one("#filter").focus()

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        self._draw(event.value, self._current if not event.value else None)

    def _draw(self, text: str, chosen: str | None) -> None:
        words = text.casefold().split()
        fitting = [model for model in self._models.items if all(word in model.name.casefold() for word in words)]
        ready = [model for model in fitting if model.ready]
        others = [model for model in fitting if not model.ready]
        folded = others and not (words or self._unfolded or chosen in [model.name for model in others])
        self._by_place = [*([] if words else [None]), *ready, *([] if folded else others)]
        width = max((len(plain_line(model.name)) for model in ready), default=0)
        rows = [Option(self._row(model, width)) for model in self._by_place]
        if folded:
            rows.append(Option(Content.styled(f"▸ {_count(len(others))} not ready", FAINT), id=UNFOLD))
        self.listing.set_options(rows or [Option("No matching models.", disabled=True)])
        if self._by_place:
            names = [model.name if model else None for model in self._by_place]
            self.listing.highlighted = names.index(chosen) if chosen in names else 0

    def _efforts(self, model: ModelInfo | None) -> list[str]:
        """The choices, with the effort that the configuration sets for the model."""
        large = next((each for each in self._models.items if each.name == self._models.large), None)
        shown = model or large
        configured = shown.default_effort if shown is not None else None
        return [name or (f"default ({configured})" if configured else "default") for name in EFFORTS]

    @on(OptionList.OptionHighlighted, "#models")
    def _show_facts(self, event: OptionList.OptionHighlighted) -> None:
        known = event.option_index < len(self._by_place)
        self.query_one(OneOf).rename(self._efforts(self._by_place[event.option_index] if known else None))

    def _row(self, model: ModelInfo | None, width: int) -> Content:
        if model is None:
            return Content.assemble(
                "✓ " if self._current is None else "  ",
                "Default",
                (f"  {plain_line(self._models.large)}" if self._models.large else "", FAINT),
            )
        notes = [f"{price_text(model.price):<20}" if model.ready else ""]
        notes += [f"{tokens(model.context_window)} context" if model.context_window else ""]
        notes += ["" if model.images else "no images", "" if model.effort else "no effort"]
        said = "  ".join(filter(None, notes)) if model.ready else f"not ready: {plain_line(model.problem or '')}"
        return Content.assemble(
            "✓ " if model.name == self._current else "  ",
            (f"{plain_line(model.name):<{width}}", "" if model.ready else FAINT),
            (f"  {said}", FAINT if model.ready else "$text-warning"),
        )

    def action_effort(self) -> None:
        """Select the next effort, wherever the focus is."""
        self.query_one(OneOf).action_step(1)

    def action_connect(self) -> None:
        self.end(ConnectWanted())

    @on(Input.Submitted, "#filter")
    @on(OptionList.OptionSelected, "#models")
    def _taken(self) -> None:
        at = self.listing.highlighted
        if at is None or self.listing.get_option_at_index(at).disabled:
            return
        if self.listing.get_option_at_index(at).id == UNFOLD:
            self._unfolded = True
            self._draw("", self._current)
            self.listing.highlighted = at
            return
        model = self._by_place[at]
        if model is not None and not model.ready:
            self.complain(plain(model.problem or "This model is not ready. Press ctrl+n to connect a provider."))
            return
        takes_effort = model is None or model.effort
        self.end(
            ModelChoice(
                model=model.name if model else None,
                effort=EFFORTS[self.query_one(OneOf).index] if takes_effort else None,
            )
        )


def _count(number: int) -> str:
    return "1 model is" if number == 1 else f"{number} models are"

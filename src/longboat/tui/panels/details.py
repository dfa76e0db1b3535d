"""The panels of the sidebar about the session and its servers: model and usage, changed files, LSP and MCP servers."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from longboat.tui.content import format_count
from longboat.tui.dialogs.figures import cost
from longboat.tui.panels.looks import FAINT
from longboat.tui.panels.todos import Panel
from longboat.wire.listings import FileDiff
from longboat.wire.plain import plain_line
from longboat.wire.workshop import LspEvent, McpEvent

FILES = 20
"""The most files listed."""
_LOOKS = {
    "ready": "$text-success",
    "connecting": "$text-warning",
    "starting": "$text-warning",
    "crashed": "$text-error",
    "failed": "$text-error",
}
"""By the state of a server. It does nothing in the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    path: str
    additions: int
    deletions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The content of the model panel."""

    model: str = ""
    effort: str = ""
    context: int = 0
    window: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class ModelPanel(Panel):
    def show(self, figures: Figures) -> None:
        rows = []
        if figures.model:
            rows.append(
                Content.assemble(plain_line(figures.model), (f" {figures.effort}" * bool(figures.effort), FAINT))
            )
        if figures.context:
            share = (
                f"{100 * figures.context / figures.window:.0f}% of {format_count(figures.window)}"
                if figures.window
                else ""
            )
            rows.append(Content.assemble(f"{format_count(figures.context)} tokens ", (share or "in context", FAINT)))
        if figures.input_tokens or figures.output_tokens:
            used = f"↑{format_count(figures.input_tokens)} ↓{format_count(figures.output_tokens)}"
            rows.append(Content.assemble(used, (f"  {cost(figures.cost)}" * bool(figures.cost), "bold")))
        self.say("Model", rows)


class ChangesPanel(Panel):
    """The files that the session changed, with the lines added and removed."""

    def show(self, files: Sequence[ChangedFile], *, complete: bool = True) -> None:
        rows = [_file(each) for each in files[:FILES]]
        if len(files) > FILES:
            rows.append(Content.styled(f"… {len(files) - FILES} more (/diff)", FAINT))
        self.say(f"Changes {len(files)}{'' if complete else '+'}", rows)


def changed_files(items: Sequence[FileDiff]) -> list[ChangedFile]:
    """One row per file, however many times it was changed."""
    rows: dict[str, ChangedFile] = {}
    for item in items:
        known = rows.get(item.path, ChangedFile(path=item.path, additions=0, deletions=0))
        rows[item.path] = ChangedFile(
            path=item.path,
            additions=known.additions + item.additions,
            deletions=known.deletions + item.deletions,
        )
    return list(rows.values())


def _file(file: ChangedFile) -> Content:
    counts = [(f" +{file.additions}", "$text-success")] if file.additions else []
    counts += [(f" −{file.deletions}", "$text-error")] if file.deletions else []
    return Content.assemble(plain_line(file.path), *counts)


class ServersPanel(Panel):
    """LSP and MCP servers with their state."""

    def show(self, lsp: Sequence[LspEvent], mcp: Sequence[McpEvent]) -> None:
        rows = [_server(each.server, "LSP", each.state, each.detail) for each in lsp]
        rows += [_server(each.server, "MCP", each.phase, each.reason) for each in mcp]
        self.say("Servers", rows)


def _server(name: str, kind: str, state: str, detail: str) -> Content:
    why = f": {plain_line(detail)}" if detail and state != "ready" else ""
    return Content.assemble(
        ("● ", _LOOKS.get(state, FAINT)), plain_line(name), (f" {kind} {plain_line(state)}{why}", FAINT)
    )

"""The panels of the sidebar about the session and its servers: model and usage, changed files, LSP and MCP servers."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from longboat.tui.content import format_count
from longboat.tui.panels.looks import FAINT
from longboat.tui.panels.todos import Panel
from longboat.wire.amounts import cost_of
from longboat.wire.models import Usage
from longboat.wire.plain import plain_line
from longboat.wire.review import ChangedFile
from longboat.wire.workspace_state import LspEvent, McpEvent

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


NOTHING_USED = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The content of the model panel."""

    model: str = ""
    effort: str = ""
    context: int = 0
    window: int = 0
    usage: Usage = NOTHING_USED


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
        usage = figures.usage
        if usage.input_tokens or usage.output_tokens:
            used = f"↑{format_count(usage.input_tokens)} ↓{format_count(usage.output_tokens)}"
            spent = "cost unknown" if usage.cost is None else cost_of(usage) if usage.cost else ""
            rows.append(Content.assemble(used, (f"  {spent}" * bool(spent), "bold")))
        self.say("Model", rows)


class ChangesPanel(Panel):
    """What is left of the session's changes: the files, with the lines added and removed."""

    def show(self, files: Sequence[ChangedFile], *, complete: bool = True) -> None:
        rows = [_file(each) for each in files[:FILES]]
        if len(files) > FILES:
            rows.append(Content.styled(f"… {len(files) - FILES} more (/diff)", FAINT))
        self.say(f"Changes {len(files)}{'' if complete else '+'}", rows)


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

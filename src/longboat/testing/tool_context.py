"""A context for one tool: a real directory, and all that a tool asks, shows, reads and changes kept to be looked at.

    context = OpenToolContext(tmp_path)
    result = await context.use(ViewTool(), path="a.txt")

Allows everything except what `refuse` names. Keeps rule A3 as a server does: a change needs a prior read and an
unchanged file. Must not know the runtime.
"""

import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from longboat.core.tool import ToolSpec
from longboat.permissions.verdict import Allow, Need, Rule, parse_rules
from longboat.tools.context import PlanAnswer, ToolContext, ToolError
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.registry import built_in_traits
from longboat.wire.workspace_state import TodoItem


class CallableTool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    path: Path
    before: bytes | None
    after: bytes | None


class OpenToolContext:
    def __init__(
        self,
        directory: Path,
        *,
        environ: Mapping[str, str] | None = None,
        refuse: Callable[[Need], bool] = lambda _: False,
        on_permit: Callable[[Need], Awaitable[None]] | None = None,
        diagnostics: str = "",
        answers: Sequence[str] = (),
        hidden: Callable[[str], bool] = lambda _: False,
        harmless: bool = False,
        deny: Sequence[str] = (),
    ) -> None:
        """`on_permit` runs while a permission is being asked; `diagnostics` is what every change is answered;
        `answers` is what every question is; `hidden` are the paths that no one is to view. `harmless` allows every
        command as harmless, and no other way, as a check that is wrong about all of them would; `deny` are the rules
        that hold for such a command all the same."""
        self._directory = directory.resolve()
        self._environ = dict(os.environ) if environ is None else dict(environ)
        self._refuse = refuse
        self._on_permit = on_permit
        self._diagnostics = diagnostics
        self._answers = tuple(answers)
        self._hidden = hidden
        self._harmless = harmless
        self._deny = parse_rules(deny, built_in_traits())
        self._seen: dict[Path, str] = {}
        self.needs: list[Need] = []
        self.outputs: list[str] = []
        self.reads: list[Path] = []
        self.expected: dict[str, Change] = {}
        self.changes: list[Change] = []
        self.questions: list[str] = []
        self.choices: dict[str, str] = {}
        """The choices of the last question, with their descriptions."""
        self.todos: tuple[TodoItem, ...] = ()
        self.tasks: list[str] = []

    @property
    def directory(self) -> Path:
        return self._directory

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    async def permit(self, need: Need) -> Allow:
        self.needs.append(need)
        if self._on_permit is not None:
            await self._on_permit(need)
        if self._refuse(need):
            raise ToolError(f"Not allowed: {need.title or need.tool}.")
        return Allow(harmless=self._harmless)

    def deny_rules(self) -> tuple[Rule, ...]:
        return self._deny

    def hidden(self) -> Callable[[str], bool]:
        return self._hidden

    def output(self, text: str) -> None:
        self.outputs.append(text)

    def saw(self, path: Path) -> None:
        """The session has read the file as it is now."""
        self._seen[path] = _digest(path.read_bytes())

    async def note_read(self, path: Path, content: bytes) -> None:
        self.reads.append(path)
        self._seen[path] = _digest(content)

    async def check_read(self, path: Path, content: bytes) -> None:
        if path not in self._seen:
            raise ToolError(f"{path} has not been read in this session. View it first.")
        if self._seen[path] != _digest(content):
            raise ToolError(f"{path} has changed since it was read. View it again.")

    async def expect_change(self, path: Path, before: bytes | None, after: bytes | None) -> str:
        key = token_hex(8)
        self.expected[key] = Change(path=path, before=before, after=after)
        return key

    def may_change(self) -> bool:
        return True

    async def forget_change(self, key: str) -> None:
        del self.expected[key]

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        self.changes.append(self.expected.pop(key))
        if after is None:
            self._seen.pop(path, None)
        else:
            self._seen[path] = _digest(after)
        return self._diagnostics

    async def ask(
        self, text: str, *, choices: Sequence[str], multiple: bool, descriptions: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        self.questions.append(text)
        self.choices = dict(zip_longest(choices, descriptions, fillvalue=""))
        return self._answers

    async def propose(self, text: str, items: Sequence[TodoItem]) -> PlanAnswer | None:
        """Every plan is approved."""
        self.questions.append(text)
        await self.put_todos(items)
        return PlanAnswer(approved=True, wish="")

    async def put_todos(self, items: Sequence[TodoItem]) -> None:
        self.todos = tuple(items)

    async def delegate(self, prompt: str, *, agent: str | None) -> str:
        self.tasks.append(prompt)
        return f"done: {prompt}"

    async def facts(self) -> str:
        return "Longboat, for a test."

    async def use(self, tool: CallableTool, **arguments: Any) -> ToolResult:
        """Call the tool as a turn does."""
        call = ToolCall(
            call_id="call_1",
            name=tool.spec.name,
            arguments=arguments,
            session_id="ses_1",
            run_id="run_1",
        )
        return await tool.run(call, self)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

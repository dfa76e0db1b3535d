"""The services of a workspace that a tool uses during one call: permissions, files, questions, live output.

Implements longboat.tools.context.ToolContext.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from longboat.core.answers import agrees, declines
from longboat.errors import ConfigInvalid
from longboat.permissions.verdict import (
    Allow,
    Deny,
    Need,
    Rule,
    Rules,
    danger,
    grant_for,
    hidden_by,
    judge,
    may_be_denied,
    parts_of,
)
from longboat.runtime.clock import now
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.turn.sub_agents import delegate
from longboat.runtime.workspace.info import facts
from longboat.store.changes import put_todos
from longboat.store.protocol import Entry, Unit
from longboat.store.records import RunRecord
from longboat.tools.context import PlanAnswer, ToolError
from longboat.tools.files.paths import printable
from longboat.tools.process.shell_paths import files_named, guarded_links
from longboat.wire.asks import CallAnswer, Permission, PermissionAnswer, Question
from longboat.wire.events import Change
from longboat.wire.ids import new_id
from longboat.wire.requests import Approve
from longboat.wire.tools import Effect
from longboat.wire.workspace_state import TodoItem, Todos

GO_AHEAD = "Go ahead"
NOT_YET = "Not yet"
NO_WAY_AROUND = "Do not look for a way around it: continue without it, or say that you cannot."

NEEDS_A_PERSON = (
    "Until the plan is approved, a person must approve each call of an MCP server, and no one is here. Plan without it."
)


def _with_guarded_names(need: Need, workspace: Path) -> Need:
    """A file that a guarded name leads to, such as a linked `longboat.json`, is guarded under its own name too."""
    if need.action == "read" or not need.paths:
        return need
    links = guarded_links(workspace)
    names = filter(None, map(links.name_of, need.paths))
    return replace(need, paths=(*need.paths, *names))


def _lead_elsewhere(paths: Sequence[str]) -> bool:
    """Whether any of these resolved paths has become a link."""
    return any(os.path.realpath(path) != os.path.normpath(path) for path in paths)


class News(Protocol):
    """Receives what a call does before it has a result."""

    def show(self, text: str) -> None:
        """Live output."""

    def ask(self, asked_at: str) -> None:
        """The call starts to wait for a person."""

    def note(self, answer: CallAnswer, asked_at: str, answered_at: str) -> None:
        """Someone answered a permission or question of the call."""

    def wait(self, waited_s: float) -> None:
        """Its sub-agent waited for people."""


class CallContext:
    def __init__(
        self,
        services: WorkspaceServices,
        record: RunRecord,
        call_id: str,
        *,
        news: News,
        told: set[Path],
        approved: bool,
        planning: bool,
    ) -> None:
        """`told`: instructions that this turn's model has read. `approved`: a hook allowed the call. `planning`: the
        turn must not change anything yet."""
        self._services = services
        self._record = record
        self._call_id = call_id
        self._told = told
        self._by_hook = approved
        self._planning = planning
        self._judged: Rules | None = None
        self._news = news
        self.output = news.show
        self.instructions: list[str] = []
        """What files below the workspace say of what the call has read."""

    @property
    def directory(self) -> Path:
        return self._services.directory

    @property
    def environ(self) -> Mapping[str, str]:
        return self._services.tools.environ_of(self._record.run)

    async def permit(self, need: Need) -> Allow:
        """Deny rules, allow rules, session grants; then ask, unless this run was approved beforehand (A2)."""
        resolved = need.paths
        # The tool that runs a command looks up its paths, before and after it is permitted.
        is_command = self._services.tools.traits_of(need.tool).effect is Effect.RUNS
        await asyncio.to_thread(self._check_private, need, is_command=is_command)
        if not is_command:
            need = await asyncio.to_thread(_with_guarded_names, need, self.directory)
        rules = self._judged = self._rules()
        grants = await self._grants()
        verdict = judge(need, rules=rules, grants=grants, directory=str(self.directory))
        match verdict:
            case Allow():
                return Allow() if self._by_hook else verdict
            case Deny():
                raise ToolError(f"A rule denies this ({verdict.rule}). {NO_WAY_AROUND}")
        approved = await self._is_approved(need)
        if approved:
            self._check_denials(need, rules)
        if approved or self._is_readable(need):
            return Allow()
        ask = self._ask_for(need, verdict.why, rules, grants)
        self._news.ask(ask.asked_at)
        answered = await self._services.asks.permission(ask)
        await self._heed(answered)
        if answered.automatic:
            await self.permit(replace(need, paths=resolved))
        else:
            self._judge_again(need, rules)
        if not is_command and await asyncio.to_thread(_lead_elsewhere, resolved):
            raise ToolError(f"The path of this {need.tool} was replaced while it waited for approval. Call it again.")
        return Allow()

    def _ask_for(self, need: Need, why: str, rules: Rules, grants: tuple[Rule, ...]) -> Permission:
        """What people are asked: the need, why it needs approval, and the rules that an answer would add."""
        run = self._record.run
        offer = grant_for(need, rules=rules, grants=grants, directory=str(self.directory))
        parts, more_parts = parts_of(need, rules=rules, grants=grants, directory=str(self.directory))
        return Permission(
            id=new_id(),
            session_id=run.session_id,
            run_id=run.run_id,
            tool_call_id=self._call_id,
            tool=need.tool,
            action=need.action,
            argument=need.argument,
            title=need.title or f"{need.tool} {need.argument}",
            detail=need.detail,
            why=why,
            grant=offer.narrow,
            wide=offer.wide,
            parts=parts,
            more_parts=more_parts,
            danger=danger(need, rules=rules, directory=str(self.directory)),
            rules_file=self._services.rules_file if offer.narrow or offer.wide else "",
            asked_at=now(),
            parent_run_id=run.parent_run_id,
            parent_session_id=run.parent_session_id,
        )

    async def _is_approved(self, need: Need) -> bool:
        """Whether the call was approved beforehand, by a hook or with the whole run. While the turn plans, the latter
        does not include calls that change nothing by the word of a foreign program."""
        if self._by_hook or self._record.approve is not Approve.ALL:
            return self._by_hook
        if not (self._planning and need.foreign):
            return True
        is_asked = self._call_id in self._services.asks.calls(self._record.run.run_id)  # before a restart
        if not is_asked and not self._record.options.wait_for_answers and not await self._services.host.can_answer():
            raise ToolError(NEEDS_A_PERSON)
        return False

    def _check_private(self, need: Need, *, is_command: bool) -> None:
        """Refuse the server's own files under any name, whatever rules and people allow."""
        known = self._services.private_files.known()
        named = files_named(need, self.directory) if is_command else ()
        if name := next(filter(None, map(known, (*need.paths, *named))), ""):
            raise ToolError(f"{printable(name)} is one of Longboat's own files. No tool may use it. {NO_WAY_AROUND}")

    def deny_rules(self) -> tuple[Rule, ...]:
        return self._rules_by_now().deny

    def _rules_by_now(self) -> Rules:
        """Return the current rules; if the file is being edited and cannot be read, those the call was judged by."""
        try:
            return self._rules()
        except ToolError:
            if self._judged is None:
                raise
            return self._judged

    def _judge_again(self, need: Need, before: Rules) -> None:
        """Judge the call again that a person allowed: the answer may have taken long, and rules added since then may
        deny it. Rules removed since then change nothing: the person has seen the whole call."""
        rules = self._rules_by_now()
        verdict = judge(need, rules=rules, directory=str(self.directory))
        if isinstance(verdict, Deny):
            raise ToolError(f"A rule that was just added denies this ({verdict.rule}). {NO_WAY_AROUND}")
        added = tuple(rule for rule in rules.deny if rule not in before.deny)
        self._check_denials(need, replace(rules, allow=(), deny=added))

    def _check_denials(self, need: Need, rules: Rules) -> None:
        """Refuse what may turn out to be denied, in calls that no person reviews."""
        if why := may_be_denied(need, rules=rules, directory=str(self.directory)):
            raise ToolError(f"A rule may deny this: {why} {NO_WAY_AROUND}")

    def hidden(self) -> Callable[[str], bool]:
        return self._services.private_files.hidden_with(hidden_by(self._rules(), directory=str(self.directory)))

    async def _heed(self, answered: Permission) -> None:
        self._note(answered, CallAnswer(answer=answered.answer, answered_by=answered.answered_by))
        match answered.answer:
            case PermissionAnswer.DENY:
                raise ToolError(f"Denied by the user: {answered.reason}" if answered.reason else "Denied by the user.")
            case PermissionAnswer.ALWAYS:
                try:
                    await self._services.remember(answered.granted)
                except (ConfigInvalid, OSError) as error:
                    # It is allowed for this session at least: that was recorded with the answer.
                    self.output(f"[The rule could not be saved: {error}]\n")

    def _is_readable(self, need: Need) -> bool:
        """Whether it reads our own output files or the user's skills, which we told the model to read."""
        roots = self._services.tools.readable
        return (
            need.action == "read"
            and bool(need.paths)
            and all(any(Path(path).is_relative_to(root) for root in roots) for path in need.paths)
        )

    def _rules(self) -> Rules:
        try:
            return self._services.rules()
        except ConfigInvalid as error:
            raise ToolError(f"The rules cannot be read: {error.message}") from None

    async def _grants(self) -> tuple[Rule, ...]:
        session_id = self._record.run.parent_session_id or self._record.run.session_id
        return await self._services.store.reads.grants(session_id, self._services.tools.traits)

    async def note_read(self, path: Path, content: bytes) -> None:
        await self._services.files.note_read(self._record.run.session_id, path, content)
        self._services.tools.warm(path)
        for place, text in await self._services.tools.instructions_for(path):
            if place not in self._told:
                self._told.add(place)
                self.instructions.append(text)

    async def check_read(self, path: Path, content: bytes) -> None:
        await self._services.files.check_read(self._record.run.session_id, path, content)

    async def expect_change(self, path: Path, before: bytes | None, after: bytes | None) -> str:
        return await self._services.files.expect_change(self._record, path, before, after)

    def may_change(self) -> bool:
        return self._services.tools.may_change()

    async def forget_change(self, key: str) -> None:
        await self._services.files.forget_change(key)

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        await self._services.files.note_change(self._record, key, path, before, after)
        return await self._services.tools.diagnostics_after(path, after)

    async def ask(
        self, text: str, *, choices: Sequence[str], multiple: bool, descriptions: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        answered = await self._ask(text, choices=choices, descriptions=descriptions, multiple=multiple)
        if answered is None:
            return None
        self._note(answered, CallAnswer(answered_by=answered.answered_by))
        return answered.answer

    async def propose(self, text: str, items: Sequence[TodoItem]) -> PlanAnswer | None:
        answered = await self._ask(text, choices=(GO_AHEAD, NOT_YET), multiple=False)
        if answered is None:
            return None
        said = " ".join(answered.answer).strip()
        approved = agrees(said, GO_AHEAD)
        if approved:
            await self.put_todos(items)
        answer = CallAnswer(answer=PermissionAnswer.ONCE if approved else None, answered_by=answered.answered_by)
        self._note(answered, answer)
        return PlanAnswer(approved=approved, wish="" if declines(said, NOT_YET) else said)

    async def _ask(
        self, text: str, *, choices: Sequence[str], multiple: bool, descriptions: Sequence[str] = ()
    ) -> Question | None:
        run = self._record.run
        is_asked = self._services.asks.question_of(run.run_id, self._call_id) is not None
        if not is_asked and not self._record.options.wait_for_answers and not await self._services.host.can_answer():
            return None
        question = Question(
            id=new_id(),
            session_id=run.session_id,
            run_id=run.run_id,
            tool_call_id=self._call_id,
            text=text,
            choices=tuple(choices),
            descriptions=tuple(descriptions),
            multiple=multiple,
            asked_at=now(),
            parent_run_id=run.parent_run_id,
            parent_session_id=run.parent_session_id,
        )
        self._news.ask(question.asked_at)
        return await self._services.asks.question(question)

    def _note(self, answered: Permission | Question, answer: CallAnswer) -> None:
        self._news.note(answer, answered.asked_at, answered.answered_at or now())

    async def put_todos(self, items: Sequence[TodoItem]) -> None:
        run = self._record.run
        todos = Todos(session_id=run.session_id, items=tuple(items))
        entry = Entry.of(Change.UPDATED, todos, session_id=run.session_id, parent=run.parent_session_id)
        writes = [put_todos(todos.session_id, todos.items)]
        await self._services.store.submit(Unit(workspace_id=self._services.id, writes=writes, entries=[entry]))

    async def delegate(self, prompt: str, *, agent: str | None) -> str:
        return await delegate(
            self._services,
            self._record,
            self._call_id,
            prompt,
            agent,
            planning=self._planning,
            waited=self._news.wait,
        )

    async def facts(self) -> str:
        return await facts(self._services, self._record)

"""The tools of one workspace and the processes they run. Set up on first use; closed with the workspace (B7).

Owns the jobs, the project's context files and the configured tools. Must not know permissions.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longboat.config.demands import HARMLESS
from longboat.config.keys import PROVIDER_KEYS
from longboat.config.load import user_config_file
from longboat.config.references import SHELL_TEXTS, names_in
from longboat.config.settings import Config
from longboat.context.git_head import read_head
from longboat.context.hooks import Hooks, read_hooks
from longboat.context.instructions import for_small_window
from longboat.context.library import Agent, Command, Context, Library, Skill
from longboat.context.process import NotConfirmed, Process
from longboat.context.prompt import build_prompt, build_short_prompt, build_small_prompt, instruction_block
from longboat.context.stamps import Kept
from longboat.core.prompts import NO_TOOLS, PLAN_AS_ANSWER, PLAN_FIRST, PLAN_WITH_TOOL
from longboat.errors import BadInput, JobNotFound
from longboat.models.protocol import Model
from longboat.runtime.turn.mcp_prompts import PromptCall, command_info, fetch_prompt
from longboat.runtime.turn.setup import TurnSetup
from longboat.runtime.workspace.client_environment import ClientEnvironments
from longboat.runtime.workspace.configured_tools import ConfiguredTools, ToolSetup, lsp_event, mcp_event
from longboat.runtime.workspace.project_files import ProjectFiles, SharedReading
from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.described import (
    tools_for_small_models,
    tools_to_plan_with,
    tools_to_propose_with,
    without_agent_names,
)
from longboat.tools.process.deadline import clock
from longboat.tools.process.output_files import OutputFiles
from longboat.tools.protocol import Tool
from longboat.tools.registry import built_in_traits
from longboat.tools.sandbox.sandbox import SandboxMode, SandboxPolicy
from longboat.wire import models as wire
from longboat.wire import workspace_state
from longboat.wire.discovery import runtime_dir
from longboat.wire.tools import UNKNOWN, SubAgents, ToolTraits

if TYPE_CHECKING:
    from longboat.tools.mcp.logins import Logins
    from longboat.tools.process.job import Job
    from longboat.tools.process.jobs import Jobs

SMALL_WINDOW = 16_000
"""In tokens. A model with less gets few tools with short descriptions: those of all tools would fill its window."""

_SHELL_STARTUP = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE"})
_OURS = frozenset(name for names in PROVIDER_KEYS.values() for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetupBasis:
    """What the setup of a turn is made of."""

    hooks: Hooks
    context: Context
    tools: Mapping[str, Tool]
    said: Mapping[str, str]
    """The instructions of the MCP servers."""
    agent: Agent | None
    """The sub-agent that the project defines."""
    can_call: bool
    child: bool
    plan: bool


logger = logging.getLogger(__name__)

LEAVE_S = 0.7
"""How long MCP and language servers have to leave in order."""
END_S = 1.5
"""How long everything that runs has to end: with the rest, within what B5 allows."""


class WorkspaceTools:
    def __init__(
        self,
        directory: Path,
        *,
        data_dir: Path,
        scratch: Path,
        config: Callable[[], Config],
        logins: "Logins",
        output_files: OutputFiles,
        extra: Iterable[Tool],
        tell: Callable[[msgspec.Struct], None],
    ) -> None:
        self._directory = directory
        self._data_dir = data_dir
        self._scratch = scratch
        self._config = config
        self._logins = logins
        self._output_files = output_files
        self._extra = tuple(extra)
        self._tell = tell
        self._library = Library(directory, environ=os.environ, user_dir=Path.home())
        self._context = Context()
        self._head = Kept(partial(read_head, directory))
        self._project = SharedReading(self._read_project)
        self._secrets: set[str] = set()
        """Variables that the configuration has had keys from."""
        self._secrets_of: Config | None = None
        """The configuration that they were taken from last."""
        self._configured: tuple[bytes, ConfiguredTools] | None = None
        self._have_servers: Kept[bool] | None = None
        """Whether the language servers of the configured tools know some of the files."""
        self._newest_setup: tuple[_SetupBasis, TurnSetup] | None = None
        """The setup of the newest turn and what it was made of. Most turns are set up alike."""
        self._opening = asyncio.Lock()
        self._retired = Tasks()
        self.environments = ClientEnvironments()
        self.jobs: Jobs | None = None
        self._allowed: tuple[float, float] | None = None
        self._closed = False
        """For how long commands may run, and since when."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment for child processes that belong to no run: the last client's, else the server's."""
        return self._for_children(self.environments.of())

    def environ_of(self, run: wire.Run) -> Mapping[str, str]:
        """The environment for child processes of a run, or of its sub-agent."""
        return self._for_children(self.environments.of(run.parent_run_id or run.run_id, run.client_id))

    def _for_children(self, sent: Mapping[str, str] | None) -> Mapping[str, str]:
        """Remove our keys and tokens, and everything that a shell would run on its own."""
        given = os.environ if sent is None else sent
        return _without_our_own({name: value for name, value in given.items() if not self._is_kept_back(name)})

    def _is_kept_back(self, name: str) -> bool:
        own = name.startswith(("LONGBOAT_", "BASH_FUNC_")) or name in _SHELL_STARTUP or name in _OURS
        return own or name in self._secrets

    async def read_project(self) -> ProjectFiles:
        """Read what a turn takes from the project's files, as they are now. Turns that start together share it."""
        return self._unchanged_project() or await self._project.get()

    def _unchanged_project(self) -> ProjectFiles | None:
        """What was read before, if a look at a few files shows that none has changed, as before most turns. Looks right
        here, as `config` does: another thread would take ten times as long to begin."""
        have_servers = self._have_servers.peek() if self._have_servers is not None else None
        if have_servers is None or (head := self._head.peek()) is None or (context := self._library.peek()) is None:
            return None
        return ProjectFiles(context=context[0], head=head[0], have_servers=have_servers[0])

    def _read_project(self) -> ProjectFiles:
        have_servers = self._have_servers
        return ProjectFiles(
            context=self._library.load(),
            head=self._head.get(),
            have_servers=have_servers.get() if have_servers is not None else None,
        )

    async def turn_setup(
        self, project: ProjectFiles, *, model: Model, agent: str | None, child: bool, plan: bool
    ) -> TurnSetup:
        """Set up the next turn. `agent` names a sub-agent that the project defines. `plan`: the turn must change
        nothing, and proposes a plan instead."""
        config = self._config()
        self._note_secrets(config)
        hooks = read_hooks(config.hooks)
        self._context = project.context
        if model.context_window < SMALL_WINDOW:
            return await self._small_setup(config, model, project, child=child, plan=plan)
        defined = self.agent(agent) if agent is not None else None
        configured = await self._configured_tools(config)
        basis = _SetupBasis(
            hooks=hooks,
            context=project.context,
            tools=await self._tools(configured, project),
            said=configured.mcp.instructions(),
            agent=defined,
            can_call=model.abilities.tools,
            child=child,
            plan=plan,
        )
        if self._newest_setup is None or self._newest_setup[0] != basis:
            self._newest_setup = (basis, self._make_setup(basis))
        return self._newest_setup[1]

    def _make_setup(self, basis: _SetupBasis) -> TurnSetup:
        context, agent, child, everything = basis.context, basis.agent, basis.child, basis.tools
        system = build_prompt(
            self._directory,
            instructions=context.instructions,
            skills=context.skills,
            agents=() if child else context.agents,
            base=agent.prompt if agent is not None else None,
        )
        system += "".join(f"\n\nThe MCP server {name} says:\n{text}" for name, text in basis.said.items())
        system += "" if basis.can_call else NO_TOOLS
        if not context.agents:
            everything = without_agent_names(everything)
        tools = _of_child(everything, agent) if child or agent is not None else everything
        tools = _for_plan(tools, everything, plan=basis.plan, child=child) if basis.can_call else {}
        setup = TurnSetup(system=system, tools=tools, hooks=basis.hooks, problems=context.problems)
        return _setup_to_plan(setup, plan=basis.plan)

    def _note_secrets(self, config: Config) -> None:
        if config is not self._secrets_of:
            self._secrets |= _secrets(config)
            self._secrets_of = config

    async def shell(self) -> TurnSetup:
        """The tool for a command that a person runs, without a model."""
        config = self._config()
        self._note_secrets(config)
        # Without the MCP servers' tools: this would wait for a server that does not answer.
        built_in = (await self._configured_tools(config)).own
        shell = next(tool for tool in built_in if tool.spec.traits.command)
        return TurnSetup(system="", tools={shell.spec.name: shell}, hooks=read_hooks(config.hooks))

    @property
    def traits(self) -> Mapping[str, ToolTraits]:
        """The traits of the tools that permission rules may name: built in, or passed to the app."""
        return {**built_in_traits(), **{tool.spec.name: tool.spec.traits for tool in self._extra}}

    def traits_of(self, tool: str) -> ToolTraits:
        return self.traits.get(tool, UNKNOWN)

    def agent(self, name: str) -> Agent:
        for agent in self._context.agents:
            if agent.name == name:
                return agent
        known = ", ".join(agent.name for agent in self._context.agents) or "none"
        raise ToolError(f"There is no sub-agent {name!r}. Defined here: {known}.")

    async def command(self, name: str) -> Command | None:
        """Return the command of that name, as its file is now."""
        context = await asyncio.to_thread(self._library.load)
        command = next((each for each in context.commands if each.name == name), None)
        if command is not None and command.agent not in (None, *(agent.name for agent in context.agents)):
            raise BadInput(f"/{name} needs the sub-agent {command.agent!r}, which is not defined here.")
        return command

    @property
    def context(self) -> Context:
        """As the newest turn read it."""
        return self._context

    async def list_skills(self) -> workspace_state.SkillPage:
        """What the files of the project and of the user offer, as they are now, and the prompts of the MCP servers
        that are connected. A command in a file hides a prompt of the same name."""
        context = await asyncio.to_thread(self._library.load)
        prompts = self._configured[1].mcp.prompts() if self._configured is not None else []
        known = {each.name for each in context.commands}
        called = [info for info in map(command_info, prompts) if info.name not in known]
        return workspace_state.SkillPage(
            items=tuple(_info(skill) for skill in context.skills),
            commands=(
                *(
                    workspace_state.CommandInfo(
                        name=each.name, description=each.description, argument_hint=each.argument_hint
                    )
                    for each in context.commands
                ),
                *called,
            ),
            agents=tuple(_info(agent) for agent in context.agents),
            problems=context.problems,
        )

    @property
    def readable(self) -> tuple[Path, ...]:
        """Paths outside the workspace that may be read without approval: full outputs, and the user's skills."""
        skills = tuple(Path(os.path.realpath(skill.path.parent)) for skill in self._context.skills)
        return (Path(os.path.realpath(self._scratch)), *skills)

    async def instructions_for(self, path: Path) -> list[tuple[Path, str]]:
        """Return what AGENTS.md files below the workspace say about a file, each with its path."""
        found = await asyncio.to_thread(self._library.for_path, path)
        return [(each.path, instruction_block(each, self._directory)) for each in found.items]

    async def diagnostics_after(self, path: Path, content: bytes | None) -> str:
        """Return what language servers say about a file that was just changed."""
        if content is None or self._configured is None:
            return ""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return ""
        return await self._configured[1].lsp.diagnostics_after(path, text)

    def warm(self, path: Path) -> None:
        """Start the language server of a file that was read and may soon be edited."""
        if self._configured is not None:
            self._configured[1].lsp.warm(path)

    async def mcp_shown(self) -> tuple[workspace_state.McpEvent, ...]:
        configured = await self._configured_tools(self._config())
        return tuple(mcp_event(state) for state in configured.mcp.states())

    async def mcp_prompt(self, call: PromptCall) -> str | None:
        """Return an MCP server's prompt for this call; None if a command has that name, or there is no such server.
        ToolError says why the server cannot be used."""
        config = self._config()
        command = str(call).removeprefix("/")
        if call.server not in config.mcp or any(each.name == command for each in self._context.commands):
            return None
        return await fetch_prompt((await self._configured_tools(config)).mcp, call)

    async def mcp_login(self, server: str, redirect_url: str | None) -> workspace_state.McpEvent:
        """Start a login to an MCP server, or complete it with the address where its page ended."""
        mcp = (await self._configured_tools(self._config())).mcp
        state = mcp.begin_login(server) if redirect_url is None else mcp.end_login(server, redirect_url)
        return mcp_event(await state)

    async def wait_logged_in(self, server: str) -> None:
        """Wait until no login to this MCP server is pending."""
        if self._configured is not None:
            await self._configured[1].mcp.wait_logged_in(server)

    async def lsp_shown(self) -> tuple[workspace_state.LspEvent, ...]:
        configured = await self._configured_tools(self._config())
        return tuple(lsp_event(status) for status in configured.lsp.statuses)

    def allow_for(self, seconds: float, *, since: float | None = None) -> None:
        """End all commands, hooks, MCP servers and language servers when this time is over, unless it is called again:
        see `Jobs.allow_for`. Also those that are started later."""
        self._allowed = seconds, clock() if since is None else since
        if self.jobs is not None:
            self.jobs.allow_for(seconds, since=self._allowed[1])

    def may_change(self) -> bool:
        """Whether this server may still change files here. Later, another one may be the owner (G3)."""
        return not self._closed and (self._allowed is None or clock() < sum(self._allowed))

    async def start_hook(
        self, argv: Sequence[str], *, directory: Path, environ: Mapping[str, str], streams: tuple[int, int, int]
    ) -> Process:
        """Start a hook below a guard."""
        from longboat.tools.process.supervisor_client import CannotGuard, DeadlinePassed

        async with self._opening:
            programs = (await self._swept_jobs()).programs
        try:
            return await programs.start(argv, directory=directory, environ=environ, streams=streams)
        except (CannotGuard, DeadlinePassed):
            raise NotConfirmed from None

    async def aclose(self) -> None:
        """MCP and language servers have a moment to leave in order. Then all that runs is ended, whatever they do."""
        self._closed = True
        try:
            if self._configured is not None:
                async with asyncio.timeout(LEAVE_S):
                    await self._configured[1].aclose()
        except TimeoutError:
            logger.warning("some servers of %s did not leave in time", self._directory)
        finally:
            if self.jobs is not None:
                async with asyncio.timeout(END_S):
                    await self.jobs.aclose()
        await self._retired.aclose()

    async def _small_setup(
        self, config: Config, model: Model, project: ProjectFiles, *, child: bool, plan: bool
    ) -> TurnSetup:
        """Set up a turn for a model with a small window."""
        can = model.abilities
        if can.agent:
            told = for_small_window(self._context.instructions, model.context_window)
            system = build_short_prompt(self._directory, instructions=told)
        else:
            system = build_small_prompt(date.today().isoformat())
        setup = TurnSetup(
            system=system if can.tools else system + NO_TOOLS,
            tools=await self._few_tools(config, model, project, child=child, plan=plan),
            hooks=read_hooks(config.hooks),
            problems=self._context.problems,
            surroundings=can.agent,
        )
        return _setup_to_plan(setup, plan=plan)

    async def _few_tools(
        self, config: Config, model: Model, project: ProjectFiles, *, child: bool, plan: bool
    ) -> dict[str, Tool]:
        if not model.abilities.tools:
            return {}
        tools = tools_for_small_models(await self._tools(await self._configured_tools(config), project))
        return _for_plan(_of_child(tools, None) if child else tools, tools, plan=plan, child=child)

    async def _tools(self, configured: ConfiguredTools, project: ProjectFiles) -> dict[str, Tool]:
        own = await configured.tools(have_servers=project.have_servers)
        return {tool.spec.name: tool for tool in (*own, *self._extra)}

    async def _configured_tools(self, config: Config) -> ConfiguredTools:
        async with self._opening:
            jobs = await self._swept_jobs(prepare=bool(config.hooks or config.mcp))
            key = ConfiguredTools.key(config)
            if self._configured is None or self._configured[0] != key:
                new = await asyncio.to_thread(ConfiguredTools, config, self._shop(jobs))
                if self._configured is not None:
                    # A running call loses its server, because the configuration no longer wants it.
                    self._retired.spawn(self._configured[1].aclose(), name="retire configured")
                self._configured = (key, new)
                self._have_servers = Kept(lambda stamps: new.lsp.find_files(stamps.look_at))
            return self._configured[1]

    async def _swept_jobs(self, *, prepare: bool = False) -> "Jobs":
        """The jobs, and with them the guards, once nothing is left of an earlier server's. One caller at a time.
        `prepare`: guards will be needed, whatever the turn does."""
        from longboat.tools.process.jobs import Jobs

        if self.jobs is None:
            mine = self.jobs = Jobs(
                self._scratch,
                files=self._output_files,
                on_change=lambda job_id, _: self._tell(_job_info(mine.get(job_id))),
            )
            if self._allowed is not None:
                seconds, since = self._allowed
                mine.allow_for(seconds, since=since)
            await mine.sweep()
            if prepare:
                mine.programs.prepare()
        return self.jobs

    def jobs_shown(self) -> tuple[workspace_state.Job, ...]:
        return tuple(_job_info(job) for job in self.jobs.list()) if self.jobs is not None else ()

    async def read_job(self, job_id: str, after: int | None, *, wait_s: float) -> workspace_state.JobOutput:
        """Return a job and its output after a position, or its newest output."""
        job = self._job(job_id)
        if after is not None:
            await job.wait_news(after, wait_s)
        start, text = job.buffer.piece(after)
        return workspace_state.JobOutput(job=_job_info(job), text=text, start=start, next=start + len(text))

    async def kill_job(self, job_id: str, by: str | None) -> workspace_state.Job:
        job = self._job(job_id)
        if self.jobs is not None:
            await self.jobs.kill(job, by=by)
        return _job_info(job)

    def _job(self, job_id: str) -> "Job":
        for job in self.jobs.list() if self.jobs is not None else ():
            if job.job_id == job_id:
                return job
        raise JobNotFound(job_id)

    def sandbox(self, config: Config) -> SandboxPolicy:
        """How the commands of this workspace are sandboxed."""
        return SandboxPolicy(
            mode=SandboxMode(config.sandbox),
            workspace=self._directory,
            temp=self._scratch / "tmp",
            hidden=(
                self._data_dir,
                user_config_file(os.environ, Path.home()).parent,
                runtime_dir(os.environ, os.getuid()),
            ),
        )

    def _shop(self, jobs: "Jobs") -> ToolSetup:
        return ToolSetup(
            directory=self._directory,
            sandbox=self.sandbox,
            environ=os.environ,
            child_environ=self.environ,
            jobs=jobs,
            logins=self._logins,
            tell=self._tell,
        )


def _info(item: Skill | Agent) -> workspace_state.SkillInfo:
    return workspace_state.SkillInfo(name=item.name, description=item.description, path=str(item.path))


def _job_info(job: "Job") -> workspace_state.Job:
    return workspace_state.Job(
        id=job.job_id,
        command=job.command,
        state=workspace_state.JobState(job.state.value),
        exit_code=job.exit_code,
        seconds=job.seconds,
        killed_by=job.killed_by,
    )


def _without_our_own(environ: dict[str, str]) -> dict[str, str]:
    """Remove the virtual environment that Longboat itself runs in: a project's `python` is not Longboat's."""
    if environ.get("VIRTUAL_ENV") != sys.prefix:
        return environ
    del environ["VIRTUAL_ENV"]
    ours = os.path.join(sys.prefix, "bin")
    places = [place for place in environ.get("PATH", "").split(os.pathsep) if place.rstrip("/") != ours]
    return {**environ, "PATH": os.pathsep.join(places)}


def _secrets(config: Config) -> set[str]:
    """The variables from which the configuration takes values. A new section is searched by default; one that an
    untrusted project may set takes none, and must not hide `PATH` from commands."""
    sections = msgspec.to_builtins(config)
    searched = [section for name, section in sections.items() if name not in HARMLESS | SHELL_TEXTS]
    return names_in(msgspec.json.encode(searched).decode())


def _for_plan(tools: Mapping[str, Tool], everything: Mapping[str, Tool], *, plan: bool, child: bool) -> dict[str, Tool]:
    """Choose the tools of a run, whether it plans first or not. Only people's own runs propose plans."""
    proposing = tools_to_propose_with(everything)
    if not plan:
        return {name: tool for name, tool in tools.items() if name not in proposing}
    return tools_to_plan_with(tools) | ({} if child else proposing)


def _setup_to_plan(setup: TurnSetup, *, plan: bool) -> TurnSetup:
    """Add what the model must know while nothing may be changed."""
    if not plan:
        return setup
    tool = next(iter(tools_to_propose_with(setup.tools)), None)
    propose = PLAN_AS_ANSWER if tool is None else PLAN_WITH_TOOL.format(tool=tool)
    return replace(setup, system=setup.system + PLAN_FIRST.format(propose=propose), planning=True)


def _of_child(tools: Mapping[str, Tool], agent: Agent | None) -> dict[str, Tool]:
    """Choose the tools of a sub-agent: by default those that read; a sub-agent that the project defines has those in
    its file."""
    read_only = agent is None or agent.read_only
    given = (SubAgents.ALL,) if read_only else (SubAgents.ALL, SubAgents.UNRESTRICTED)
    allowed = {name: tool for name, tool in tools.items() if tool.spec.traits.sub_agents in given}
    if agent is None or agent.tools is None:
        return allowed
    return {name: tool for name, tool in allowed.items() if name in agent.tools}

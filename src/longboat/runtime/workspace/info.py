"""What an agent may know about itself and its server (A1), for people who ask it about Longboat.

Only names and states. Must not show a value from the configuration that may be a secret: keys, headers, addresses,
environments and arguments of servers are never read here.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from longboat import __version__
from longboat.config.load import FILE_NAME, user_config_file
from longboat.config.settings import Config
from longboat.core.history import for_model
from longboat.core.turn import estimate_tokens
from longboat.errors import ConfigInvalid, LongboatError
from longboat.runtime.protocols import WorkspaceServices
from longboat.store.records import RunRecord
from longboat.tools.sandbox.sandbox import describe_sandbox
from longboat.tools.sandbox.wall import describe_wall
from longboat.wire.requests import Approve

MAX_SHOWN = 20
"""Names of one kind."""
MAX_NAME = 100


async def facts(services: WorkspaceServices, record: RunRecord) -> str:
    """Lines of Markdown, one for each thing."""
    lines = [f"Longboat {__version__}", f"Workspace: {services.directory}", *_describe_run(record)]
    lines += await _model(services, record)
    try:
        config = services.config()
    except ConfigInvalid as error:
        return "\n".join((*lines, f"Configuration: invalid: {error.message}"))
    lines += [f"Configuration files: {_files(services.directory)}", *_settings(config, record)]
    lines.append(f"Sandbox for bash: {await describe_sandbox(services.tools.sandbox(config))}")
    lines.append(f"Commands that run without approval: {await describe_wall()}")
    lines.append(f"Allowed for this session: {_format_names(await _grants(services, record))}")
    return "\n".join((*lines, *await _describe_surroundings(services)))


def _describe_run(record: RunRecord) -> Iterator[str]:
    run = record.run
    yield f"Session: {run.session_id}"
    yield f"Run: {run.run_id}"
    if run.parent_run_id is not None:
        yield f"Sub-agent of run {run.parent_run_id} in session {run.parent_session_id}"


async def _model(services: WorkspaceServices, record: RunRecord) -> list[str]:
    try:
        model = await services.model(record.model, "large")
    except LongboatError as error:
        return [f"Model: {error.message}"]
    used = await _count_used(services, record.run.session_id)
    share = round(100 * used / model.context_window) if model.context_window else 0
    return [
        f"Model: {model.provider}/{model.name}",
        f"Context window: {model.context_window:,} tokens; "
        f"the messages take about {used:,} ({share} %), instructions and tools not counted",
    ]


async def _count_used(services: WorkspaceServices, session_id: str) -> int:
    found = await services.store.reads.session(services.id, session_id)
    summary_seq = found.summary_seq if found is not None else 0
    messages = await services.store.reads.messages(session_id, after=max(0, summary_seq - 1))
    return estimate_tokens(for_model(messages, summary_seq))


def _files(directory: Path) -> str:
    places = (user_config_file(os.environ, Path.home()), directory / FILE_NAME)
    return ", ".join(str(place) for place in places if place.is_file()) or "none"


def _settings(config: Config, record: RunRecord) -> Iterator[str]:
    yolo = record.approve is Approve.ALL
    yield f"Permissions: {'anything that no rule denies is allowed' if yolo else 'what no rule allows needs approval'}"
    yield f"Allow rules: {_format_names(config.permissions.allow)}"
    yield f"Deny rules: {_format_names(config.permissions.deny)}"
    yield f"Providers configured: {_format_names(config.providers)}"
    large, small = (" or ".join(config.models.names(role)) or "by key" for role in ("large", "small"))
    yield f"Roles: large {large}, small {small}"
    yield f"After a crash: {config.on_restart.value}"
    yield f"Hooks: {_format_names(config.hooks)}"


async def _grants(services: WorkspaceServices, record: RunRecord) -> list[str]:
    session_id = record.run.parent_session_id or record.run.session_id
    return [rule.text for rule in await services.store.reads.grants(session_id, services.tools.traits)]


async def _describe_surroundings(services: WorkspaceServices) -> list[str]:
    context = services.tools.context
    mcp = [f"{each.server} ({each.phase}, {each.tools} tools)" for each in await services.tools.mcp_shown()]
    lsp = [f"{each.server} ({each.state})" for each in await services.tools.lsp_shown()]
    jobs = [f"{each.id} ({each.state.value}): {each.command}" for each in services.tools.jobs_shown()]
    return [
        f"MCP servers: {_format_names(mcp)}",
        f"Language servers started: {_format_names(lsp)}",
        f"Instructions: {_format_names(str(each.path) for each in context.instructions)}",
        f"Skills: {_format_names(each.name for each in context.skills)}",
        f"Commands: {_format_names(each.name for each in context.commands)}",
        f"Sub-agents: {_format_names(each.name for each in context.agents)}",
        f"Jobs: {_format_names(jobs)}",
    ]


def _format_names(names: Iterable[str]) -> str:
    known = [" ".join(name.split()) for name in names]
    shown = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in known[:MAX_SHOWN]]
    more = [f"and {len(known) - MAX_SHOWN} more"] if len(known) > MAX_SHOWN else []
    return ", ".join((*shown, *more)) or "none"

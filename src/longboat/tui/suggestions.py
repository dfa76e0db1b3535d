"""Reads what the workspace offers: models, project commands, files for `@`, and what the empty screen shows. Nothing
waits for it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from longboat.errors import LongboatError
from longboat.tui.commands import choices
from longboat.tui.completion import Choice, Sort, Wanted, matching
from longboat.tui.welcome import RECENT, WelcomeState
from longboat.wire.listings import ModelPage
from longboat.wire.workspace_state import ConfigChanged

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

FILES = 20


async def look_around(app: "LongboatApp") -> None:
    client, workspace_id = app.connection.client, app.connection.workspace_id
    try:
        app.models = await client.offered_models(workspace_id)
        app.project_commands = (await client.skills(workspace_id)).commands
    except LongboatError:
        return  # requested again when it is needed
    _show(app, app.models, offering=True)


def hear_config(app: "LongboatApp", told: ConfigChanged) -> None:
    """Show the problem from the event itself: with an invalid file, the models cannot be read."""
    app.told_problem = False
    if not told.ready:
        app.models = ModelPage(items=(), large=told.large, small=told.small, problem=told.problem)
        _show(app, app.models)


def _show(app: "LongboatApp", models: ModelPage, *, offering: bool = False) -> None:
    """`offering`: the set-up opens if no provider is ready. It does not help if the configuration is wrong."""
    if models.problem and not app.told_problem:
        app.told_problem = True
        offering = offering and not any(model.ready for model in models.items)
        offered = offering and app.model_setup.offer()
        if not offered and app.current.session_id is not None:  # the empty screen shows it
            app.notify(models.problem, title="No model available", severity="warning", timeout=20, markup=False)
    app.show_state()
    show_welcome(app)
    app.show_notices()


def advice(app: "LongboatApp") -> tuple[str, ...]:
    """Advice about the model in a new session, unless the person chose the model."""
    told = app.models.advice if app.models is not None else None
    return (told,) if told and app.model is None and app.current.session_id is None else ()


async def read_welcome(app: "LongboatApp") -> None:
    """Read what the empty screen shows besides the model."""
    client, workspace_id = app.connection.client, app.connection.workspace_id
    try:
        offer = await client.welcome(workspace_id)
        recent = await client.sessions(workspace_id, limit=RECENT, top=True)
    except LongboatError:
        return  # without it the screen is shorter
    app.welcome_read = WelcomeState(branch=offer.branch or "", suggestions=offer.suggestions, sessions=recent.items)
    show_welcome(app)


def show_welcome(app: "LongboatApp") -> None:
    """Show the empty screen, or hide it as soon as there is a session or a prompt."""
    app.welcome.display = app.current.session_id is None and not app.sender.waiting
    if not app.welcome.display:
        return
    models = app.models
    model = app.model or (models.large if models is not None else None) or ""
    info = next((each for each in models.items if each.name == model), None) if models is not None else None
    app.welcome.show(
        replace(
            app.welcome_read,
            path=app.connection.path,
            model=model,
            window=(info.context_window or 0) if info is not None else 0,
            problem=(models.problem or "") if models is not None and app.model is None else "",
        )
    )


async def complete(app: "LongboatApp", wanted: Wanted) -> None:
    """Send completions to the composer."""
    if wanted.sort is Sort.COMMAND:
        if not wanted.query:
            await look_around(app)  # the project's files may have changed
        app.composer.offer(wanted, matching(choices(app.project_commands), wanted.query))
        return
    try:
        page = await app.connection.client.search(app.connection.workspace_id, wanted.query, limit=FILES)
    except LongboatError:
        return  # no completions: the path can still be typed
    app.composer.offer(wanted, [Choice(text=f"@{path}") for path in page.items])

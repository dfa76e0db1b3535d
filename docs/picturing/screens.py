"""The screens besides the shared session: set-up, new session, search, review, dangerous command and inbox.

Each function takes its pictures into `to` and leaves nothing running.
"""

from pathlib import Path

from playwright.async_api import Browser

from longboat.client import Client
from longboat.wire.models import RunState
from longboat.wire.requests import Approve, Submit
from picturing import story
from picturing.page import Tab, open_tab, save
from picturing.scene import Scene
from picturing.terminal import open_window

SEARCHED = "tide"


async def set_up(scene: Scene, browser: Browser, to: Path) -> None:
    """What someone sees who has configured nothing."""
    async with scene.client("anna") as anna:
        workspace_id = (await anna.join(scene.project)).id
    async with open_tab(browser, scene, "anna") as tab:
        await tab.go(f"/#/{workspace_id}")
        await tab.press("Connect a provider")
        await tab.sees("Anthropic")
        save(to / "web-setup.png", await tab.shot())
    async with open_window(scene, "anna") as window:
        await window.sees("Anthropic")
        window.take(to / "terminal-setup.svg")


async def begin(scene: Scene, browser: Browser, to: Path) -> None:
    """A new session, before its first prompt."""
    async with scene.client("anna") as anna:
        workspace_id = (await anna.join(scene.project)).id
    async with open_tab(browser, scene, "anna") as tab:
        await tab.go(f"/#/{workspace_id}")
        await tab.sees("Recent sessions")
        save(to / "web-new.png", await tab.shot())
    async with open_window(scene, "anna") as window:
        await window.sees("Recent sessions")
        window.take(to / "terminal-new.svg")


async def search(scene: Scene, browser: Browser, to: Path) -> None:
    async with scene.client("anna") as anna:
        workspace_id = (await anna.join(scene.project)).id
        session_id = next(each.id for each in (await anna.sessions(workspace_id)).items if each.title == story.TITLE)
    async with open_tab(browser, scene, "anna") as tab, open_window(scene, "ben", session_id) as window:
        await tab.open(f"/#/{workspace_id}/{session_id}")
        await tab.page.get_by_role("searchbox", name="Search sessions").fill(SEARCHED)
        await tab.page.locator(".hits mark").first.wait_for()
        save(to / "web-search.png", await tab.shot())
        await window.sees("ben")
        await window.press("ctrl+s")
        await window.sees("Fog signals")
        await window.press(*SEARCHED)
        await window.sees("In messages")
        window.take(to / "terminal-search.svg")


async def show_dangers(scene: Scene, browser: Browser, to: Path) -> None:
    """Changes to review, then a dangerous command that waits, then the inbox with it and with another project."""
    async with scene.client("anna") as anna, open_tab(browser, scene, "anna") as tab:
        workspace_id = (await anna.join(scene.project)).id
        other_id = (await anna.join(scene.other_project)).id
        await _fail(scene, anna, other_id)
        session_id = (await anna.create_session(workspace_id, "A warning on the board")).id
        scene.model.add(*story.warning_steps())
        changing = Submit(session_id=session_id, prompt=story.WARNED, approve=Approve.ALL)
        await _finish(anna, workspace_id, await _submit(anna, workspace_id, changing))
        await _review(tab, f"/#/{workspace_id}/{session_id}", to)
        scene.model.add(*story.publishing_steps())
        submit = Submit(session_id=session_id, prompt=story.PUBLISH)
        run_id = await _submit(anna, workspace_id, submit)
        async with open_window(scene, "ben", session_id) as window:
            await tab.sees("Dangerous.")
            save(to / "web-danger.png", await tab.shot())
            await window.sees("Dangerous.")
            window.take(to / "terminal-danger.svg")
        asking_id = await _ask(scene, anna, other_id)
        await tab.go("/#/inbox")
        await tab.sees("When should the lamp be lit?")
        save(to / "web-inbox.png", await tab.shot())
        for place, waiting in ((workspace_id, run_id), (other_id, asking_id)):
            await anna.cancel_run(place, waiting)
            await _finish(anna, place, waiting)


async def _fail(scene: Scene, client: Client, workspace_id: str) -> None:
    """A run that fails."""
    session_id = (await client.create_session(workspace_id, "The logbook of 1987")).id
    scene.model.add(*story.logbook_steps())
    submit = Submit(session_id=session_id, prompt=story.LOGBOOK)
    await _finish(client, workspace_id, await _submit(client, workspace_id, submit))


async def _ask(scene: Scene, client: Client, workspace_id: str) -> str:
    """A run that waits for an answer."""
    session_id = (await client.create_session(workspace_id, "The lamp")).id
    scene.model.add(*story.lamp_steps())
    return await _submit(client, workspace_id, Submit(session_id=session_id, prompt=story.LAMPS))


async def _review(tab: Tab, session: str, to: Path) -> None:
    """The changes in two columns; then back to the conversation."""
    await tab.open(session)
    await tab.press("Review")
    await tab.press("Split")
    await tab.page.locator("table.diff.split").nth(1).wait_for()
    save(to / "web-review.png", await tab.shot())
    await tab.press("Unified")
    await tab.page.keyboard.press("Escape")


async def _submit(client: Client, workspace_id: str, submit: Submit) -> str:
    """Gives the run."""
    return (await client.submit(workspace_id, submit)).run_id


async def _finish(client: Client, workspace_id: str, run_id: str) -> None:
    while (await client.get_run(workspace_id, run_id, wait_s=10)).state is not RunState.FINISHED:
        pass

"""Takes the pictures of the docs again: `make pictures`.

From nothing: a real server with a scripted model, a repository with a bug, Anna at the web page and Ben at the terminal
app. What they see is kept in docs/pictures/. Needs chromium, tmux and git.
"""

import asyncio
import base64
import time
from pathlib import Path

from picturing import story
from picturing.film import film
from picturing.page import PHONE, Tab, open_browser, open_tab, save
from picturing.past import live_through
from picturing.recording import Pane, recording
from picturing.scene import Scene, open_scene
from picturing.screens import begin, search, set_up, show_dangers
from picturing.terminal import Window, open_window
from playwright.async_api import Browser

from longboat.client import Client
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import RunState
from longboat.wire.requests import Submit

PICTURES = Path(__file__).parent / "pictures"
ALLOWED = [f"bash({story.TESTS})"]

TOGETHER = ("web-light.png", "terminal-session.svg")
SHEET = """<style>
body {{ margin: 0; height: 960px; background: #dfe5ec; }}
img {{ position: absolute; border-radius: 10px; box-shadow: 0 12px 36px #1b273855; }}
.page {{ left: 40px; top: 36px; width: 1180px; }}
.terminal {{ right: 40px; bottom: 36px; width: 800px; }}
</style><img class="page" src="data:image/png;base64,{page}">
<img class="terminal" src="data:image/svg+xml;base64,{terminal}">"""


async def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    async with open_scene(story.FILES) as scene, open_browser() as browser:
        async with scene.serving():
            await set_up(scene, browser, PICTURES)
        scene.configure(ALLOWED)
        await live_through(scene, story.PAST)
        async with scene.serving(), scene.client("anna") as anna, scene.client("ben") as ben:
            await begin(scene, browser, PICTURES)
            await work_together(scene, browser, anna, ben)
            await search(scene, browser, PICTURES)
            await show_dangers(scene, browser, PICTURES)
            scene.git("reset", "-q", "--hard")
            scene.git("clean", "-fdq")
            await record(scene)


async def work_together(scene: Scene, browser: Browser, anna: Client, ben: Client) -> None:
    workspace_id = (await anna.join(scene.project)).id
    session_id = (await anna.create_session(workspace_id, story.TITLE)).id
    async with open_tab(browser, scene, "anna") as tab, open_window(scene, "ben", session_id) as window:
        await tab.open(f"/#/{workspace_id}/{session_id}")
        await window.sees("ben")
        scene.model.add(*story.steps())
        submit = Submit(session_id=session_id, prompt=story.PROMPT)
        run_id = (await anna.submit(workspace_id, submit)).run_id
        on_phone = await answer(tab, window, anna, ben, workspace_id)
        while (await anna.get_run(workspace_id, run_id, wait_s=10)).state is not RunState.FINISHED:
            pass
        await look_at_the_end(tab, window, on_phone)
        await compose(browser)


async def answer(tab: Tab, window: Window, anna: Client, ben: Client, workspace_id: str) -> bytes:
    """Anna answers the question, Ben allows the edit; both see both. Gives the page as it asks on a phone."""
    await tab.sees("What should it return")
    await window.sees("What should it return")
    (question,) = (await anna.questions(workspace_id)).items
    await anna.answer_question(workspace_id, question.id, story.CHOICES[0])
    await window.sees("timedelta(days=1)")
    await tab.sees("timedelta(days=1)")
    await window.gone("anna answered")
    window.take(PICTURES / "terminal-permission.svg")
    save(PICTURES / "web-permission.png", await tab.shot())
    on_phone = await tab.shot(size=PHONE)
    (ask,) = (await ben.permissions(workspace_id)).items
    await ben.answer_permission(workspace_id, ask.id, PermissionAnswer.SESSION)
    return on_phone


async def look_at_the_end(tab: Tab, window: Window, on_phone: bytes) -> None:
    await tab.sees("All tests pass")
    await window.sees("All tests pass")
    await window.gone("answered")
    await tab.gone("article.ask")
    save(PICTURES / "web-light.png", await tab.shot())
    save(PICTURES / "web-dark.png", await tab.shot(dark=True))
    save(PICTURES / "web-phone.png", on_phone, await tab.shot(size=PHONE))
    await tab.go("/stats")
    await tab.sees("Tokens")
    save(PICTURES / "web-stats.png", await tab.shot())
    await window.scroll_to("edit")
    window.take(PICTURES / "terminal-session.svg")
    await window.press("ctrl+s")
    await window.sees("Fog signals")
    window.take(PICTURES / "terminal-sessions.svg")
    await window.press("escape")
    await window.press("ctrl+end")
    window.app.theme = "longboat-light"
    await window.sees("All tests pass")
    window.take(PICTURES / "terminal-light.svg")


async def compose(browser: Browser) -> None:
    """The page, and the terminal before it."""
    page, terminal = (base64.b64encode((PICTURES / name).read_bytes()).decode() for name in TOGETHER)
    context = await browser.new_context(viewport={"width": 1440, "height": 960}, device_scale_factor=1.5)
    shown = await context.new_page()
    await shown.set_content(SHEET.format(page=page, terminal=terminal))
    await shown.wait_for_function("[...document.images].every((image) => image.complete)")
    save(PICTURES / "together.png", await shown.screenshot())
    await context.close()


async def record(scene: Scene) -> None:
    """Anna asks at the command line, and Ben answers from another terminal."""
    scene.model.add(*story.recorded_steps())
    anna = Pane(who="anna", columns=102, rows=30, scene=scene)
    ben = Pane(who="ben", columns=102, rows=22, scene=scene)
    async with recording(anna, ben) as recorder:
        await anna.type(f'longboat run "{story.RECORDED}"')
        await anna.shows("[d]eny")
        await asyncio.sleep(1.5)
        await ben.type("longboat permissions")
        await ben.shows("[d]eny")
        await asyncio.sleep(1.5)
        await ben.type("y")
        await anna.shows("continue with")
        await asyncio.sleep(1)
    (PICTURES / "run.svg").write_text(film((anna, ben), recorder.frames()), encoding="utf-8")


if __name__ == "__main__":
    began = time.monotonic()
    asyncio.run(main())
    for file in sorted(PICTURES.iterdir()):
        print(f"{file.stat().st_size // 1024:5} kB  {file.name}")
    print(f"{time.monotonic() - began:.0f} s")

"""What comes from elsewhere is inert in the terminal app: no escape gets through, no markup is obeyed (issue 4)."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import terminal_attacks
from textual import events
from tui_driver import TuiDriver, local_server, open_tui

import hostile
from longboat.client import Client
from longboat.errors import ModelError
from longboat.testing import CallTool, Fail, Say, ScriptedModel, ScriptedTool, Step, Think
from longboat.tui.messages import Thought
from longboat.tui.prose import Prose
from longboat.tui.toolcard import ToolCard
from longboat.wire.requests import Approve, Submit

CORPUS = tuple(text.encode(errors="replace").decode() for text in (*terminal_attacks.PAYLOADS, *hostile.PAYLOADS))
"""What would act on a terminal or on Textual, and what would act on a page: the same texts can come to both."""
SIZE = 16
GROUPS = [CORPUS[start : start + SIZE] for start in range(0, len(CORPUS), SIZE)]


def assert_inert(tui: TuiDriver) -> None:
    """Nothing on the screen would do more than be read."""
    for line in tui.lines:
        assert terminal_attacks.acting(list(line)) == []


async def assert_inert_from_end_to_start(tui: TuiDriver) -> None:
    """Likewise of all that can be scrolled to."""
    view = tui.app.view
    await view.newest()
    await tui.pilot.pause()
    for top in range(int(view.max_scroll_y), -1, -view.size.height):
        view.scroll_to(y=top, animate=False)
        await tui.pilot.pause()
        assert_inert(tui)


def turn(group: Sequence[str]) -> list[Step]:
    """Every payload as a thought, text, code, the name of a tool, its arguments, a plan and a failure."""
    todos = {"items": [{"text": payload, "state": "in_progress"} for payload in group]}
    return [
        [
            *(Think(f"{payload}\n") for payload in group),
            *(Say(f"said {payload} end\n\n- {payload}\n\n```{payload}\n{payload}\n```\n\n") for payload in group),
            *(CallTool("look", {"path": payload}) for payload in group),
            *(CallTool(payload, {payload: payload}) for payload in group[:4]),
            CallTool("todos", todos),
        ],
        [Fail(ModelError("\n".join(group), title=group[0]))],
    ]


def test_the_corpus_is_large() -> None:
    assert len(set(CORPUS)) >= 100


@pytest.mark.parametrize("group", GROUPS, ids=range(len(GROUPS)))
async def test_payloads_in_every_place_stay_text(tmp_path: Path, group: Sequence[str]) -> None:
    tool = ScriptedTool("look", "\n".join(f"result {payload} end" for payload in group))
    server = local_server(tmp_path, ScriptedModel(turn(group)))
    for payload in group:
        name = "".join(letter for letter in payload if letter not in "/\0")
        (Path(server.project) / name[:60]).write_text("")
    async with (
        server.serving(tools=[tool]),
        Client(socket=server.socket, client_id="bob") as bob,
        open_tui(server, size=(110, 50), approve=Approve.ALL) as tui,
    ):
        workspace = (await bob.join(server.project)).id
        text = "\n".join(group)
        session = await bob.create_session(workspace, text.partition("\n")[0])
        tui.app.open_session(session.id)
        await bob.submit(workspace, Submit(session_id=session.id, prompt=text))
        await tui.until(lambda: tui.idle and tui.notes and len(tui.cards) > len(group))
        await assert_inert_from_end_to_start(tui)
        for folded in [*tui.app.query(ToolCard), *tui.app.query(Thought)]:
            folded.toggle()
        await tui.pilot.pause()
        await assert_inert_from_end_to_start(tui)
        await tui.type("@")
        await tui.until(lambda: tui.app.composer.choices.is_open)
        assert_inert(tui)
        assert not tui.app._exit
        for payload in group:
            if payload.isascii() and payload.isprintable():
                assert payload in tui.prompts[0]
                assert f"result {payload} end" in tui.text_of(tui.cards[0])


async def test_a_client_with_a_strange_name_and_a_file_with_one_are_harmless(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    (Path(server.project) / "a[red]\x1b[2Jb.txt").write_text("")
    async with server.serving(), open_tui(server) as tui, Client(socket=server.socket, client_id="b.o:b") as bob:
        await bob.join(server.project)
        await tui.type("see @red")
        await tui.until(lambda: tui.app.composer.choices.is_open)
        assert_inert(tui)
        await tui.pilot.press("tab")
        assert "@a[red]" in tui.app.composer.input.text
        assert_inert(tui)


async def test_another_clients_prompt_is_harmless_when_it_is_called_up_again(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        async with Client(socket=server.socket, client_id="bob") as bob:
            async for _ in bob.run("evil \x1b[2J\x9b31m prompt", path=server.project):
                pass
        async with open_tui(server, resume=True) as tui:
            await tui.until(lambda: tui.answers)
            await tui.pilot.press("up")
            assert tui.app.composer.input.text.startswith("evil")
            assert_inert(tui)
            tui.app.post_message(events.Paste("pasted \x1b]52;c;x\x07"))
            await tui.pilot.pause()
            assert "pasted" in tui.app.composer.input.text
            assert_inert(tui)


async def test_a_link_is_named_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    model = ScriptedModel([[Say("[go](javascript:alert) and [page](https://page.example)")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        monkeypatch.setattr(tui.app, "open_url", lambda url, **_: opened.append(url))
        await tui.say("links")
        await tui.until(lambda: tui.idle and tui.answers)
        for href in ("file:///etc/passwd", "https://page.example"):
            tui.app.query_one(Prose).action_link(href)
        await tui.until(lambda: opened == ["https://page.example"])

"""The terminal app: prompts, streaming, tool cards, and how runs end (F2)."""

import asyncio
import os
from pathlib import Path

import pytest
from textual import events
from tui_driver import local_server, open_tui

from longboat.client import Client
from longboat.errors import ModelError
from longboat.testing import CallTool, Fail, Gate, Hang, Pause, Say, ScriptedModel, ScriptedTool, Think, Use
from longboat.tui.messages import PromptView, Thought
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.panels.todos import TodosPanel
from longboat.tui.status import Header, StatusBar
from longboat.tui.tail import Notices
from longboat.wire.events import Event
from longboat.wire.listings import ModelInfo, ModelPage
from longboat.wire.models import Outcome, RunComplete, RunState, ToolCallPart
from longboat.wire.requests import Approve, Submit


async def test_a_prompt_is_answered_on_the_screen(tmp_path: Path) -> None:
    """F2: the session is made by the first prompt; text shows as it streams."""
    gate = Gate()
    model = ScriptedModel([[Say("# Hi\n\nfirst "), Pause(gate), Say("second")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("hello there")
        await gate.reached()
        await tui.until(lambda: tui.answers == ["# Hi\n\nfirst "])
        assert tui.prompts == ["hello there"]
        assert "enter steer" in str(tui.app.composer.border_subtitle)
        gate.open()
        await tui.until(lambda: tui.answers == ["# Hi\n\nfirst second"] and tui.idle)
        assert tui.app.query_one(Header).details.title == "hello there"
        assert "send" in str(tui.app.composer.border_subtitle)


@pytest.mark.parametrize("chosen", [None, "local/smollm2-135m"])
async def test_a6_where_nothing_is_configured_an_empty_session_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    """A6: the local model talks but is no coder; not to somebody who chose it, and not below a conversation."""
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('only looked for, never imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    server = local_server(tmp_path, None, '{"models": {"detect": false}}')
    async with server.serving(), open_tui(server, model=chosen) as tui:
        await tui.until(lambda: tui.app.models is not None)
        if chosen is not None:
            assert not tui.app.query_one(Notices).display
            return
        await tui.until(lambda: "cannot code" in tui.screen)
        assert "No provider is configured" in tui.screen
        assert "/connect" in tui.screen
        await tui.say("/model anthropic/claude-sonnet-5-5")
        await tui.until(lambda: "cannot code" not in tui.screen)
        tui.app.model = None
        tui.app.open_session(None)
        await tui.until(lambda: "cannot code" in tui.screen)
        await tui.say("! true", key="enter")
        await tui.until(lambda: tui.app.current.session_id is not None and "cannot code" not in tui.screen)


async def test_thoughts_are_folded_and_open_at_a_click(tmp_path: Path) -> None:
    model = ScriptedModel([[Think("first idea\nsecond idea"), Say("done")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("think")
        await tui.until(lambda: tui.answers == ["done"])
        thought = tui.app.query_one(Thought)
        assert "first idea" not in tui.text_of(thought)
        await tui.pilot.click(Thought)
        assert "first idea\nsecond idea" in tui.text_of(thought)


async def test_a_tool_call_is_a_card_with_its_state_output_and_diff(tmp_path: Path) -> None:
    """F2: tool cards with diffs; they open at a click."""
    gate = Gate()
    slow = ScriptedTool("slow", "its result", gate=gate)
    steps = [
        [CallTool("slow", {"path": "here"})],
        [CallTool("write", {"path": "a.py", "content": "one\ntwo\n"})],
        [CallTool("view", {"path": "missing"})],
        [Say("done")],
    ]
    async with (
        local_server(tmp_path, ScriptedModel(steps)).serving(tools=[slow]) as server,
        open_tui(server, approve=Approve.ALL) as tui,
    ):
        await tui.say("work")
        await gate.reached()
        await tui.until(lambda: tui.cards and tui.cards[0].has_class("-running"))
        await tui.until(lambda: "slow here" in tui.text_of(tui.cards[0]))
        gate.open()
        await tui.until(lambda: tui.idle and len(tui.cards) == 3 and tui.answers == ["done"])
        shown = [tui.text_of(card) for card in tui.cards]
        assert "its result" in shown[0]
        assert "1 + one" in shown[1]
        assert tui.cards[2].has_class("-failed")
        await tui.pilot.press("ctrl+b")
        assert "path: missing" in tui.text_of(tui.cards[2])


async def test_live_output_of_a_command_is_bounded(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("bash", {"command": "seq 1000; read x < wait"})], [Say("done")]])
    server = local_server(tmp_path, model)
    fifo = Path(server.project) / "wait"
    async with server.serving() as server, open_tui(server, approve=Approve.ALL) as tui:
        os.mkfifo(fifo)
        await tui.say("count")
        await tui.until(lambda: tui.cards and "1000" in tui.text_of(tui.cards[0]))
        assert len(tui.text_of(tui.cards[0]).splitlines()) < 10
        await asyncio.to_thread(fifo.write_text, "\n")
        await tui.until(lambda: tui.idle)


async def test_enter_steers_and_ctrl_q_queues(tmp_path: Path) -> None:
    """L: a steered prompt is folded into the turn, a queued one runs after it; both are shown while they wait."""
    gate = Gate()
    tool = ScriptedTool("wait", gate=gate)
    steps = [[CallTool("wait")], [Say("saw both")], [Say("then the queued one")]]
    async with (
        local_server(tmp_path, ScriptedModel(steps)).serving(tools=[tool]) as server,
        open_tui(server, approve=Approve.ALL) as tui,
    ):
        await tui.say("begin")
        await gate.reached()
        await tui.say("steer it")
        await tui.say("queue it", key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 3)
        await tui.until(lambda: tui.app.query_one(QueuePanel).display)
        gate.open()
        await tui.until(lambda: tui.idle and len(tui.answers) == 2)
        await tui.until(lambda: "steered" in tui.prompts[1])
        assert [prompt.splitlines()[0] for prompt in tui.prompts] == ["begin", "steer it", "queue it"]
        assert not tui.app.query_one(QueuePanel).display


async def test_esc_interrupts_and_esc_again_cancels_the_rest(tmp_path: Path) -> None:
    """F2, L6: the first cancels the active run alone."""
    model = ScriptedModel([[Say("half"), Hang()], [Say("next"), Hang()], [Say("after"), Hang()]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        tui.app.interrupting.clock = lambda: 0.0  # the second esc comes at once, however slow the machine is
        await tui.say("one")
        await tui.until(lambda: tui.answers == ["half"])
        await tui.say("two", key="ctrl+q")
        await tui.say("three", key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 3)
        await tui.pilot.press("escape")
        await tui.until(lambda: "■ Canceled by you." in tui.notes)
        await tui.until(lambda: tui.answers == ["half", "next"])
        assert len(tui.app.current.unfinished) == 2
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.idle)
        await tui.until(lambda: any("“three” was canceled by you before it started" in note for note in tui.notes))


async def test_what_somebody_else_stopped_says_who(tmp_path: Path) -> None:
    """F6: live, and for whoever opens the session later."""
    model = ScriptedModel([[Say("half"), Hang()]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("one")
        await tui.until(lambda: tui.answers == ["half"])
        workspace_id, (run,) = tui.app.connection.workspace_id, tui.app.current.unfinished
        async with Client(socket=server.socket, client_id="ben:web-1") as ben:
            await ben.cancel_run(workspace_id, run.run_id)
        await tui.until(lambda: "■ Canceled by ben." in tui.notes)
        async with open_tui(server, session_id=run.session_id) as late:
            await late.until(lambda: "■ Canceled by ben." in late.notes)


async def test_a_failed_run_says_why_at_its_place(tmp_path: Path) -> None:
    error = ModelError("Your key is [red]wrong[/red].", title="Refused", code="bad_key")
    model = ScriptedModel([[Fail(error)], [Say("fine")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("try")
        await tui.until(lambda: tui.idle and tui.notes)
        assert "Your key is [red]wrong[/red]." in tui.notes[0]
        await tui.say("again")
        await tui.until(lambda: tui.answers == ["fine"])


async def test_an_interrupted_run_is_told_once(tmp_path: Path) -> None:
    """What to do stands in our words; the server's say the same."""
    server = local_server(tmp_path, ScriptedModel([[Say("half"), Hang()], [Say("whole")]]))
    async with server.serving(), open_tui(server) as tui:
        await tui.say("try")
        await tui.until(lambda: tui.answers == ["half"])
        session_id = tui.app.current.session_id
    async with server.serving(), open_tui(server, session_id=session_id) as tui:
        await tui.until(lambda: tui.notes)
        assert tui.notes == ["✗ Interrupted: the server stopped. Send another prompt to continue."]


async def test_an_interrupted_run_is_told_once_to_who_looks_elsewhere(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.say("!true")
        await tui.until(lambda: tui.idle)
        tui.app.app_focus = False
        why = "The server stopped while this run was active. Send another prompt to continue."
        session_id = tui.app.current.session_id or ""
        told = f"Interrupted: {why}"
        end = RunComplete(run_id="r9", session_id=session_id, outcome=Outcome.INTERRUPTED, error=told)
        tui.app.heard(Event("run_complete", None, end))
        await tui.until(lambda: tui.notes == [f"✗ A prompt was interrupted: {why}"])
        await tui.until(lambda: tui.notifications == [f"Interrupted. {why}"])


async def test_a_retry_is_told_while_it_lasts(tmp_path: Path) -> None:
    gate = Gate()
    broken = ModelError("Overloaded.", code="overloaded", retryable=True)
    model = ScriptedModel([[Fail(broken)], [Pause(gate), Say("at last")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("try")
        await gate.reached()
        await tui.until(lambda: tui.app.query_one(Notices).display)
        assert "Overloaded" in tui.text_of(tui.app.query_one(Notices))
        gate.open()
        await tui.until(lambda: tui.answers == ["at last"])
        await tui.until(lambda: not tui.app.query_one(Notices).display)


async def test_a_shell_line_of_a_person_runs_without_the_model(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.say("!echo by hand")
        await tui.until(lambda: tui.cards and "by hand\n" in tui.text_of(tui.cards[0]))


async def test_todos_tokens_and_cost_are_shown(tmp_path: Path) -> None:
    plan = {"items": [{"text": "look", "state": "completed"}, {"text": "fix", "state": "in_progress"}]}
    model = ScriptedModel([[CallTool("todos", plan), Use(1_200, 30, 0.5)], [Say("ok"), Use(2_000, 70, 0.25)]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server, size=(120, 40)) as tui:
        await tui.say("plan")
        await tui.until(lambda: tui.idle and "Plan 1/2" in tui.text_of(tui.app.query_one(TodosPanel)))
        await tui.until(lambda: "↑3.2k ↓100" in tui.screen)
        assert "$0.75" in tui.screen
        assert tui.app.query_one(StatusBar).state.context == 2_070


async def test_how_full_the_window_is_stands_there_also_after_coming_back(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("ok"), Use(2_000, 70, 0.25)]])
    async with local_server(tmp_path, model).serving() as server:
        async with open_tui(server, size=(120, 40)) as tui:
            await tui.say("fill")
            await tui.until(lambda: tui.idle and tui.answers)
        async with open_tui(server, size=(120, 40), resume=True) as tui:
            await tui.until(lambda: tui.answers)
            info = ModelInfo(name="large/one", ready=True, context_window=4_140)
            tui.app.models = ModelPage(items=(info,), large="large/one", small=None)
            tui.app.show_state()
            await tui.until(lambda: "50% of 4.1k" in tui.screen)


async def test_another_client_is_seen_and_so_is_what_it_says(tmp_path: Path) -> None:
    """F6: the same session at the same time, and who did what."""
    model = ScriptedModel.echo()
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("mine")
        await tui.until(lambda: tui.idle)
        async with Client(socket=server.socket, client_id="bob") as bob:
            workspace, session = tui.app.connection.workspace_id, tui.app.current.session_id
            async for event in bob.run("theirs", session_id=session, workspace_id=workspace):
                if event.type == "message_delta":
                    await tui.until(lambda: tui.app.query_one(Header).details.others == ("bob",))
        await tui.until(lambda: tui.answers == ["echo: mine", "echo: theirs"])
        await tui.until(lambda: tui.prompts == ["mine", "theirs\nbob"])


async def test_a_sub_agent_shows_what_it_does_under_its_card(tmp_path: Path) -> None:
    gate = Gate()
    steps = [
        [CallTool("agent", {"prompt": "look at it"})],
        [Pause(gate), CallTool("ls", {"path": "."})],
        [Pause(second := Gate()), Say("child says")],
        [Say("parent says")],
    ]
    async with local_server(tmp_path, ScriptedModel(steps)).serving() as server, open_tui(server) as tui:
        await tui.say("delegate")
        await gate.reached()
        await tui.until(lambda: tui.cards)
        gate.open()
        await second.reached()
        await tui.until(lambda: "ls ." in tui.text_of(tui.cards[0]))
        second.open()
        await tui.until(lambda: tui.answers == ["parent says"])
        assert "child says" in tui.text_of(tui.cards[0])


async def test_two_sub_agents_with_the_same_prompt_have_cards_of_their_own(tmp_path: Path) -> None:
    begun, gone_on = (Gate(), Gate()), (Gate(), Gate())
    same = {"prompt": "look at it"}
    steps = [
        [CallTool("agent", same, "first"), CallTool("agent", same, "second")],
        [Pause(begun[0]), CallTool("ls", {"path": "notes"})],
        [Pause(begun[1]), CallTool("ls", {"path": "other"})],
        [Pause(gone_on[0]), Say("one says")],
        [Pause(gone_on[1]), Say("two says")],
        [Say("parent says")],
    ]
    server = local_server(tmp_path, ScriptedModel(steps))
    async with server.serving(), open_tui(server) as tui:
        await tui.say("delegate")
        for gate in begun:
            await gate.reached()
        for gate in begun:
            gate.open()
        for gate in gone_on:
            await gate.reached()
        await tui.until(lambda: all("ls " in tui.text_of(card) for card in tui.cards[:2]))
        mirror = tui.app.connection.mirror
        for card in tui.cards[:2]:
            child = next(each for each in mirror.sessions.values() if each.parent_call_id == card.call.id)
            page = await tui.app.connection.client.messages(tui.app.connection.workspace_id, child.id)
            called = next(part for message in page.items for part in message.parts if isinstance(part, ToolCallPart))
            said = f"agent look at it\nls {'notes' if 'notes' in called.input else 'other'}"
            await tui.until(lambda card=card, said=said: tui.text_of(card).endswith(said))
        for gate in gone_on:
            gate.open()
        await tui.until(lambda: tui.answers == ["parent says"])


async def test_who_attaches_later_sees_all_of_it(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("whole")], [Say("half "), Pause(gate), Say("rest")]])
    async with local_server(tmp_path, model).serving() as server, Client(socket=server.socket, client_id="bob") as bob:
        workspace = (await bob.join(server.project)).id
        session = (await bob.create_session(workspace)).id
        async for _ in bob.run("first", session_id=session, workspace_id=workspace):
            pass
        await bob.submit(workspace, Submit(session_id=session, prompt="second", run_id="r2"))
        await gate.reached()
        async with open_tui(server, resume=True) as tui:
            await tui.until(lambda: tui.answers == ["whole", "half "])
            await tui.until(lambda: tui.app.query_one(StatusBar).state.since is not None)
            gate.open()
            await tui.until(lambda: tui.answers == ["whole", "half rest"] and tui.idle)


async def test_leaving_while_a_run_is_active_says_that_it_goes_on(tmp_path: Path) -> None:
    """Field notes, opencode #42960; B2."""
    gate = Gate()
    model = ScriptedModel([[Say("half"), Pause(gate), Say(" whole")]])
    async with local_server(tmp_path, model).serving() as server:
        async with open_tui(server) as tui:
            await tui.say("long work")
            await gate.reached()
            await tui.pilot.press("ctrl+d")
            await tui.until(lambda: tui.app._exit)
            told = tui.app.farewell("longboat -s {session_id}")
            session_id = tui.app.current.session_id
            run = tui.app.current.unfinished[0]
        assert told.splitlines() == [
            "“long work” will continue on the server.",
            f"Continue with: longboat -s {session_id}",
        ]
        gate.open()
        async with Client(socket=server.socket) as client:
            workspace = (await client.join(server.project)).id
            ended = await client.get_run(workspace, run.run_id, wait_s=20)
            assert (ended.state, ended.outcome) == (RunState.FINISHED, Outcome.END_TURN)


async def test_undo_takes_the_turn_from_the_screen_and_redo_brings_it_back(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        for prompt in ("one", "two"):
            await tui.say(prompt)
            await tui.until(lambda: tui.idle)
        await tui.until(lambda: len(tui.answers) == 2)
        await tui.say("/undo")
        await tui.until(lambda: tui.prompts == ["one"] and tui.answers == ["echo: one"])
        await tui.say("/redo")
        await tui.until(lambda: tui.prompts == ["one", "two"] and tui.answers == ["echo: one", "echo: two"])


async def test_a_long_prompt_is_folded_until_it_is_clicked(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([[Say("ok")]])).serving() as server, open_tui(server) as tui:
        await tui.say("\n".join(f"line {number}" for number in range(100)))
        await tui.until(lambda: tui.prompts and tui.idle)
        assert "… 70 more lines" in tui.prompts[0]
        tui.app.query_one(PromptView).on_click()
        assert "line 99" in tui.prompts[0]


async def test_the_bell_rings_when_a_run_ends_and_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    gate = Gate()
    model = ScriptedModel([[Say("one")], [Pause(gate), Say("two")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        driver = tui.app._driver
        assert driver is not None
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(tui.app, "bell", lambda: rung.append("bell"))
        monkeypatch.setattr(driver, "write", rung.append)
        await tui.say("looking")
        await tui.until(lambda: tui.idle)
        assert "bell" not in rung
        await tui.say("away")
        await gate.reached()
        tui.app.post_message(events.AppBlur())
        await tui.until(lambda: not tui.app.app_focus)
        gate.open()
        await tui.until(lambda: tui.idle and "bell" in rung)
        assert rung[rung.index("bell") + 1] == "\x1b]9;Longboat: Done. looking\x1b\\"
        await tui.until(lambda: "Done." in tui.screen)

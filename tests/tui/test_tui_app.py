"""The terminal app: prompts, streaming, tool cards, and how runs end (F2)."""

import asyncio
import os
from pathlib import Path

import pytest
from textual import events
from tui_deck import aboard, harbour

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
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("hello there")
        await gate.reached()
        await deck.until(lambda: deck.answers == ["# Hi\n\nfirst "])
        assert deck.prompts == ["hello there"]
        assert "enter steer" in str(deck.app.composer.border_subtitle)
        gate.open()
        await deck.until(lambda: deck.answers == ["# Hi\n\nfirst second"] and deck.idle)
        assert deck.app.query_one(Header).place.title == "hello there"
        assert "send" in str(deck.app.composer.border_subtitle)


@pytest.mark.parametrize("chosen", [None, "local/smollm2-135m"])
async def test_a6_where_nothing_is_configured_an_empty_session_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    """A6: the local model talks but is no coder; not to somebody who chose it, and not below a conversation."""
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('only looked for, never imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    port = harbour(tmp_path, None, '{"models": {"detect": false}}')
    async with port.serving(), aboard(port, model=chosen) as deck:
        await deck.until(lambda: deck.app.models is not None)
        if chosen is not None:
            assert not deck.app.query_one(Notices).display
            return
        await deck.until(lambda: "cannot code" in deck.screen)
        assert "No provider is configured" in deck.screen
        assert "/connect" in deck.screen
        await deck.say("/model anthropic/claude-sonnet-5-5")
        await deck.until(lambda: "cannot code" not in deck.screen)
        deck.app.model = None
        deck.app.open_session(None)
        await deck.until(lambda: "cannot code" in deck.screen)
        await deck.say("! true", key="enter")
        await deck.until(lambda: deck.app.desk.session_id is not None and "cannot code" not in deck.screen)


async def test_thoughts_are_folded_and_open_at_a_click(tmp_path: Path) -> None:
    model = ScriptedModel([[Think("first idea\nsecond idea"), Say("done")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("think")
        await deck.until(lambda: deck.answers == ["done"])
        thought = deck.app.query_one(Thought)
        assert "first idea" not in deck.text_of(thought)
        await deck.pilot.click(Thought)
        assert "first idea\nsecond idea" in deck.text_of(thought)


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
        harbour(tmp_path, ScriptedModel(steps)).serving(tools=[slow]) as port,
        aboard(port, approve=Approve.ALL) as deck,
    ):
        await deck.say("work")
        await gate.reached()
        await deck.until(lambda: deck.cards and deck.cards[0].has_class("-running"))
        await deck.until(lambda: "slow here" in deck.text_of(deck.cards[0]))
        gate.open()
        await deck.until(lambda: deck.idle and len(deck.cards) == 3 and deck.answers == ["done"])
        shown = [deck.text_of(card) for card in deck.cards]
        assert "its result" in shown[0]
        assert "1 + one" in shown[1]
        assert deck.cards[2].has_class("-failed")
        await deck.pilot.press("ctrl+b")
        assert "path: missing" in deck.text_of(deck.cards[2])


async def test_live_output_of_a_command_is_bounded(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("bash", {"command": "seq 1000; read x < wait"})], [Say("done")]])
    port = harbour(tmp_path, model)
    fifo = Path(port.project) / "wait"
    async with port.serving() as port, aboard(port, approve=Approve.ALL) as deck:
        os.mkfifo(fifo)
        await deck.say("count")
        await deck.until(lambda: deck.cards and "1000" in deck.text_of(deck.cards[0]))
        assert len(deck.text_of(deck.cards[0]).splitlines()) < 10
        await asyncio.to_thread(fifo.write_text, "\n")
        await deck.until(lambda: deck.idle)


async def test_enter_steers_and_ctrl_q_queues(tmp_path: Path) -> None:
    """L: a steered prompt is folded into the turn, a queued one runs after it; both are shown while they wait."""
    gate = Gate()
    tool = ScriptedTool("wait", gate=gate)
    steps = [[CallTool("wait")], [Say("saw both")], [Say("then the queued one")]]
    async with (
        harbour(tmp_path, ScriptedModel(steps)).serving(tools=[tool]) as port,
        aboard(port, approve=Approve.ALL) as deck,
    ):
        await deck.say("begin")
        await gate.reached()
        await deck.say("steer it")
        await deck.say("queue it", key="ctrl+q")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 3)
        await deck.until(lambda: deck.app.query_one(QueuePanel).display)
        gate.open()
        await deck.until(lambda: deck.idle and len(deck.answers) == 2)
        await deck.until(lambda: "steered" in deck.prompts[1])
        assert [prompt.splitlines()[0] for prompt in deck.prompts] == ["begin", "steer it", "queue it"]
        assert not deck.app.query_one(QueuePanel).display


async def test_esc_interrupts_and_esc_again_cancels_the_rest(tmp_path: Path) -> None:
    """F2, L6: the first cancels the active run alone."""
    model = ScriptedModel([[Say("half"), Hang()], [Say("next"), Hang()], [Say("after"), Hang()]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("one")
        await deck.until(lambda: deck.answers == ["half"])
        await deck.say("two", key="ctrl+q")
        await deck.say("three", key="ctrl+q")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 3)
        await deck.pilot.press("escape")
        await deck.until(lambda: "■ Canceled by you." in deck.notes)
        await deck.until(lambda: deck.answers == ["half", "next"])
        assert len(deck.app.desk.unfinished) == 2
        await deck.pilot.press("escape", "escape")
        await deck.until(lambda: deck.idle)
        await deck.until(lambda: any("“three” was canceled by you before it started" in note for note in deck.notes))


async def test_what_somebody_else_stopped_says_who(tmp_path: Path) -> None:
    """F6: live, and for whoever opens the session later."""
    model = ScriptedModel([[Say("half"), Hang()]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("one")
        await deck.until(lambda: deck.answers == ["half"])
        workspace_id, (run,) = deck.app.connection.workspace_id, deck.app.desk.unfinished
        async with Client(socket=port.socket, client_id="ben:web-1") as ben:
            await ben.cancel_run(workspace_id, run.run_id)
        await deck.until(lambda: "■ Canceled by ben." in deck.notes)
        async with aboard(port, session_id=run.session_id) as late:
            await late.until(lambda: "■ Canceled by ben." in late.notes)


async def test_a_failed_run_says_why_at_its_place(tmp_path: Path) -> None:
    error = ModelError("Your key is [red]wrong[/red].", title="Refused", code="bad_key")
    model = ScriptedModel([[Fail(error)], [Say("fine")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("try")
        await deck.until(lambda: deck.idle and deck.notes)
        assert "Your key is [red]wrong[/red]." in deck.notes[0]
        await deck.say("again")
        await deck.until(lambda: deck.answers == ["fine"])


async def test_an_interrupted_run_is_told_once(tmp_path: Path) -> None:
    """What to do stands in our words; the server's say the same."""
    port = harbour(tmp_path, ScriptedModel([[Say("half"), Hang()], [Say("whole")]]))
    async with port.serving(), aboard(port) as deck:
        await deck.say("try")
        await deck.until(lambda: deck.answers == ["half"])
        session_id = deck.app.desk.session_id
    async with port.serving(), aboard(port, session_id=session_id) as deck:
        await deck.until(lambda: deck.notes)
        assert deck.notes == ["✗ Interrupted: the server stopped. Send another prompt to continue."]


async def test_an_interrupted_run_is_told_once_to_who_looks_elsewhere(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.say("!true")
        await deck.until(lambda: deck.idle)
        deck.app.app_focus = False
        why = "The server stopped while this run was active. Send the prompt again to continue."
        session_id = deck.app.desk.session_id or ""
        told = f"Interrupted: {why}"
        end = RunComplete(run_id="r9", session_id=session_id, outcome=Outcome.INTERRUPTED, error=told)
        deck.app.heard(Event("run_complete", None, end))
        await deck.until(lambda: deck.notes == [f"✗ A prompt was interrupted: {why}"])
        await deck.until(lambda: [note.message for note in deck.app._notifications] == [f"Interrupted. {why}"])


async def test_a_retry_is_told_while_it_lasts(tmp_path: Path) -> None:
    gate = Gate()
    broken = ModelError("Overloaded.", code="overloaded", retryable=True)
    model = ScriptedModel([[Fail(broken)], [Pause(gate), Say("at last")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("try")
        await gate.reached()
        await deck.until(lambda: deck.app.query_one(Notices).display)
        assert "Overloaded" in deck.text_of(deck.app.query_one(Notices))
        gate.open()
        await deck.until(lambda: deck.answers == ["at last"])
        await deck.until(lambda: not deck.app.query_one(Notices).display)


async def test_a_shell_line_of_a_person_runs_without_the_model(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.say("!echo by hand")
        await deck.until(lambda: deck.cards and "by hand\n" in deck.text_of(deck.cards[0]))


async def test_todos_tokens_and_cost_are_shown(tmp_path: Path) -> None:
    plan = {"items": [{"text": "look", "state": "completed"}, {"text": "fix", "state": "in_progress"}]}
    model = ScriptedModel([[CallTool("todos", plan), Use(1_200, 30, 0.5)], [Say("ok"), Use(2_000, 70, 0.25)]])
    async with harbour(tmp_path, model).serving() as port, aboard(port, size=(120, 40)) as deck:
        await deck.say("plan")
        await deck.until(lambda: deck.idle and "Plan 1/2" in deck.text_of(deck.app.query_one(TodosPanel)))
        await deck.until(lambda: "↑3.2k ↓100" in deck.screen)
        assert "$0.75" in deck.screen
        assert deck.app.query_one(StatusBar).state.context == 2_070


async def test_how_full_the_window_is_stands_there_also_after_coming_back(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("ok"), Use(2_000, 70, 0.25)]])
    async with harbour(tmp_path, model).serving() as port:
        async with aboard(port, size=(120, 40)) as deck:
            await deck.say("fill")
            await deck.until(lambda: deck.idle and deck.answers)
        async with aboard(port, size=(120, 40), resume=True) as deck:
            await deck.until(lambda: deck.answers)
            info = ModelInfo(name="large/one", ready=True, context_window=4_140)
            deck.app.models = ModelPage(items=(info,), large="large/one", small=None)
            deck.app.show_state()
            await deck.until(lambda: "50% of 4.1k" in deck.screen)


async def test_another_client_is_seen_and_so_is_what_it_says(tmp_path: Path) -> None:
    """F6: the same session at the same time, and who did what."""
    model = ScriptedModel.echo()
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("mine")
        await deck.until(lambda: deck.idle)
        async with Client(socket=port.socket, client_id="bob") as bob:
            workspace, session = deck.app.connection.workspace_id, deck.app.desk.session_id
            async for event in bob.run("theirs", session_id=session, workspace_id=workspace):
                if event.type == "message_delta":
                    await deck.until(lambda: deck.app.query_one(Header).place.others == ("bob",))
        await deck.until(lambda: deck.answers == ["echo: mine", "echo: theirs"])
        await deck.until(lambda: deck.prompts == ["mine", "theirs\nbob"])


async def test_a_sub_agent_shows_what_it_does_under_its_card(tmp_path: Path) -> None:
    gate = Gate()
    steps = [
        [CallTool("agent", {"prompt": "look at it"})],
        [Pause(gate), CallTool("ls", {"path": "."})],
        [Pause(second := Gate()), Say("child says")],
        [Say("parent says")],
    ]
    async with harbour(tmp_path, ScriptedModel(steps)).serving() as port, aboard(port) as deck:
        await deck.say("delegate")
        await gate.reached()
        await deck.until(lambda: deck.cards)
        gate.open()
        await second.reached()
        await deck.until(lambda: "ls ." in deck.text_of(deck.cards[0]))
        second.open()
        await deck.until(lambda: deck.answers == ["parent says"])
        assert "child says" in deck.text_of(deck.cards[0])


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
    port = harbour(tmp_path, ScriptedModel(steps))
    async with port.serving(), aboard(port) as deck:
        await deck.say("delegate")
        for gate in begun:
            await gate.reached()
        for gate in begun:
            gate.open()
        for gate in gone_on:
            await gate.reached()
        await deck.until(lambda: all("ls " in deck.text_of(card) for card in deck.cards[:2]))
        mirror = deck.app.connection.mirror
        for card in deck.cards[:2]:
            child = next(each for each in mirror.sessions.values() if each.parent_call_id == card.call.id)
            page = await deck.app.connection.client.messages(deck.app.connection.workspace_id, child.id)
            called = next(part for message in page.items for part in message.parts if isinstance(part, ToolCallPart))
            said = f"agent look at it\nls {'notes' if 'notes' in called.input else 'other'}"
            await deck.until(lambda card=card, said=said: deck.text_of(card).endswith(said))
        for gate in gone_on:
            gate.open()
        await deck.until(lambda: deck.answers == ["parent says"])


async def test_who_attaches_later_sees_all_of_it(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("whole")], [Say("half "), Pause(gate), Say("rest")]])
    async with harbour(tmp_path, model).serving() as port, Client(socket=port.socket, client_id="bob") as bob:
        workspace = (await bob.join(port.project)).id
        session = (await bob.create_session(workspace)).id
        async for _ in bob.run("first", session_id=session, workspace_id=workspace):
            pass
        await bob.submit(workspace, Submit(session_id=session, prompt="second", run_id="r2"))
        await gate.reached()
        async with aboard(port, resume=True) as deck:
            await deck.until(lambda: deck.answers == ["whole", "half "])
            await deck.until(lambda: deck.app.query_one(StatusBar).state.since is not None)
            gate.open()
            await deck.until(lambda: deck.answers == ["whole", "half rest"] and deck.idle)


async def test_leaving_while_a_run_is_active_says_that_it_goes_on(tmp_path: Path) -> None:
    """Field notes, opencode #42960; B2."""
    gate = Gate()
    model = ScriptedModel([[Say("half"), Pause(gate), Say(" whole")]])
    async with harbour(tmp_path, model).serving() as port:
        async with aboard(port) as deck:
            await deck.say("long work")
            await gate.reached()
            await deck.pilot.press("ctrl+d")
            await deck.until(lambda: deck.app._exit)
            told = deck.app.farewell("longboat -s {session_id}")
            session_id = deck.app.desk.session_id
            run = deck.app.desk.unfinished[0]
        assert told.splitlines() == [
            "“long work” will continue on the server.",
            f"Continue with: longboat -s {session_id}",
        ]
        gate.open()
        async with Client(socket=port.socket) as client:
            workspace = (await client.join(port.project)).id
            ended = await client.get_run(workspace, run.run_id, wait_s=20)
            assert (ended.state, ended.outcome) == (RunState.FINISHED, Outcome.END_TURN)


async def test_undo_takes_the_turn_from_the_screen_and_redo_brings_it_back(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        for prompt in ("one", "two"):
            await deck.say(prompt)
            await deck.until(lambda: deck.idle)
        await deck.until(lambda: len(deck.answers) == 2)
        await deck.say("/undo")
        await deck.until(lambda: deck.prompts == ["one"] and deck.answers == ["echo: one"])
        await deck.say("/redo")
        await deck.until(lambda: deck.prompts == ["one", "two"] and deck.answers == ["echo: one", "echo: two"])


async def test_a_long_prompt_is_folded_until_it_is_clicked(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([[Say("ok")]])).serving() as port, aboard(port) as deck:
        await deck.say("\n".join(f"line {number}" for number in range(100)))
        await deck.until(lambda: deck.prompts and deck.idle)
        assert "… 70 more lines" in deck.prompts[0]
        deck.app.query_one(PromptView).on_click()
        assert "line 99" in deck.prompts[0]


async def test_the_bell_rings_when_a_run_ends_and_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    gate = Gate()
    model = ScriptedModel([[Say("one")], [Pause(gate), Say("two")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        driver = deck.app._driver
        assert driver is not None
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(deck.app, "bell", lambda: rung.append("bell"))
        monkeypatch.setattr(driver, "write", rung.append)
        await deck.say("looking")
        await deck.until(lambda: deck.idle)
        assert "bell" not in rung
        await deck.say("away")
        await gate.reached()
        deck.app.post_message(events.AppBlur())
        await deck.until(lambda: not deck.app.app_focus)
        gate.open()
        await deck.until(lambda: deck.idle and "bell" in rung)
        assert rung[rung.index("bell") + 1] == "\x1b]9;Longboat: Done. looking\x1b\\"
        await deck.until(lambda: "Done." in deck.screen)

"""What clients need beside the stream: pages from the end, a search, the plan, the models, and people's commands."""

from pathlib import Path

import pytest
from checks import check_ends, check_requests
from crash import RESUME, restarted
from running_app import TITLES_OFF, RunningApp, launch
from server_harness import serve_in

from longboat.errors import BadInput, EmptyPrompt, RunNotEditable, SessionNotFound
from longboat.models.protocol import ModelRequest
from longboat.testing import Say, ScriptedModel
from longboat.wire.models import Message, Outcome, Role, RunState, ToolCallPart, ToolResultPart
from longboat.wire.requests import CreateSession, EditRun, RunShell

BIG = 100_000


def result_of(messages: list[Message]) -> ToolResultPart:
    (part,) = [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]
    return part


async def shell(running: RunningApp, command: str, run_id: str = "r1") -> None:
    await running.workspace.run_shell(running.session_id, RunShell(command=command, run_id=run_id, client_id="ann"))


async def test_a_persons_command_is_a_run_that_the_next_prompt_knows_of(tmp_path: Path) -> None:
    """F2, `!`: accepted, done without a model, on record; E1 holds for it."""
    model = ScriptedModel([[Say("I saw it")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await shell(running, "echo by hand; pwd")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.error) == (Outcome.END_TURN, "")
        messages = list(await running.messages())
        assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
        assert result_of(messages).content.startswith(f"by hand\n{running.workspace.directory}")
        assert [run.client_id for run in running.watcher.of("run")][-1] == "ann"
        assert model.requests == []
        await running.submit("what did I do?", "r2")
        await running.completed("r2")
        seen = [part for message in model.requests[0].messages for part in message.parts]
        assert any(isinstance(part, ToolCallPart) and "by hand" in part.input for part in seen)
        check_requests(model.requests)
        await check_ends(running)


async def test_a_session_that_began_with_a_command_is_named_after_its_first_prompt(tmp_path: Path) -> None:
    """A9: and no model is asked for the title of a command."""

    def answer(request: ModelRequest) -> list[Say]:
        return [Say("A fine title" if request.messages[-1].session_id == "" else "done")]

    model = ScriptedModel(answer, context_window=BIG)
    async with launch(tmp_path, model, config="{}") as running:
        await shell(running, "echo hi")
        await running.completed("r1")
        assert (await running.workspace.session(running.session_id)).title == "!echo hi"
        assert model.requests == []
        await running.submit("look around", "r2")
        await running.watcher.until(lambda event: event.type == "session" and event.payload.title == "A fine title")
        titles = [session.title for session in running.watcher.of("session")]
        assert "look around" in titles


async def test_a_persons_command_needs_no_model_and_waits_for_its_turn(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("done")]], context_window=BIG)) as running:
        gate = running.hold_actor()
        await gate.reached()
        gate.open()
        await shell(running, "sleep 1000", "long")
        await running.watcher.in_state("long", RunState.ACTIVE)
        await shell(running, "echo second", "next")
        with pytest.raises(RunNotEditable):
            await running.workspace.edit_run("next", EditRun(prompt="something else"))
        await running.workspace.cancel_run("long")
        assert (await running.completed("long")).outcome is Outcome.CANCELED
        assert (await running.completed("next")).outcome is Outcome.END_TURN
        await check_ends(running)


@pytest.mark.parametrize("config", [TITLES_OFF, RESUME])
async def test_a_persons_command_that_a_crash_cut_off_is_interrupted_and_not_run_again(
    tmp_path: Path, config: str
) -> None:
    """B6: whatever the policy; it may have had effects. What waits behind it runs."""
    async with launch(tmp_path, ScriptedModel(context_window=BIG), config=config) as running:
        await shell(running, "echo ran | tee -a runs; sleep 1000", "long")
        await shell(running, "echo next", "next")
        await running.watcher.until(lambda event: event.type == "message_delta")
        async with restarted(running, ScriptedModel(context_window=BIG), config=config) as again:
            await again.completed("next")
            outcomes = {run.run_id: run.outcome for run in await again.ledger()}
            assert outcomes == {"long": Outcome.INTERRUPTED, "next": Outcome.END_TURN}
            assert (running.workspace.directory / "runs").read_text() == "ran\n"


async def test_a_persons_command_fails_as_a_command_and_not_as_a_run(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel(context_window=BIG)) as running:
        await shell(running, "exit 3")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        assert "3" in result_of(list(await running.messages())).content


async def test_a_rule_that_denies_holds_for_people_too(tmp_path: Path) -> None:
    """A2: a deny rule is never silently passed over."""
    config = '{"titles": false, "permissions": {"deny": ["bash(touch *)"]}}'
    async with launch(tmp_path, ScriptedModel(context_window=BIG), config=config) as running:
        await shell(running, "touch x")
        await running.completed("r1")
        result = result_of(list(await running.messages()))
        assert result.is_error
        assert not (running.workspace.directory / "x").exists()


@pytest.mark.parametrize("command", ["", "  "])
async def test_an_empty_command_is_refused(tmp_path: Path, command: str) -> None:
    async with launch(tmp_path, ScriptedModel(context_window=BIG)) as running:
        with pytest.raises(EmptyPrompt):
            await shell(running, command)


async def test_everybody_sees_who_canceled_what(tmp_path: Path) -> None:
    """F6: the active one, the queued ones, and nobody where nobody said a name."""
    async with launch(tmp_path, ScriptedModel(context_window=BIG)) as running:
        for run_id in ("a", "b", "c", "d"):
            await shell(running, "sleep 1000", run_id)
        await running.watcher.in_state("a", RunState.ACTIVE)
        await running.watcher.in_state("d", RunState.QUEUED)
        await running.workspace.cancel_run("a", "ann")
        await running.workspace.cancel_run("c", "ben")
        await running.completed("a")
        await running.workspace.cancel_session(running.session_id)
        await running.completed("d")
        stored = {run.run_id: run.canceled_by for run in await running.ledger()}
        assert stored == {"a": "ann", "b": None, "c": "ben", "d": None}
        assert {run.run_id: run.canceled_by for run in running.watcher.of("run")} == stored


async def test_a_transcript_is_paged_from_its_end(tmp_path: Path) -> None:
    """A client shows the newest first, however long a session is."""
    async with launch(tmp_path, ScriptedModel([[Say(str(n))] for n in range(5)], context_window=BIG)) as running:
        for n in range(5):
            await running.submit(f"prompt {n}", f"r{n}")
            await running.completed(f"r{n}")
        whole = list(await running.messages())
        pages = []
        before: str | None = ""
        while before is not None:
            page = await running.workspace.messages(running.session_id, limit=4, before=before)
            pages.append(list(page.items))
            before = page.next
        assert [len(page) for page in pages] == [4, 4, 2]
        assert pages[0] == whole[-4:]
        assert [message for page in reversed(pages) for message in page] == whole
        exact = await running.workspace.messages(running.session_id, limit=len(whole), before="")
        assert (list(exact.items), exact.next) == (whole, None), "there is no page before the first"
        with pytest.raises(BadInput):
            await running.workspace.messages(running.session_id, limit=4, before="x")


async def test_sessions_are_found_by_words_of_their_titles(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel(context_window=BIG)) as running:
        create = running.workspace.create_session
        one = await create(CreateSession(title="Fix the Parser of dates"))
        await create(CreateSession(title="100% of it"))
        child = await create(CreateSession(title="parser: look around"), sent_by=(one.id, "call"))

        async def found(search: str, *, top: bool = False) -> list[str]:
            page = await running.workspace.ledger.sessions(limit=9, after=None, search=search, top=top)
            return [session.title for session in page.items]

        assert await found("parser") == [child.title, one.title]
        assert await found("parser", top=True) == [one.title]
        assert await found("fix dates") == [one.title]
        assert await found("dates fix") == []
        assert await found("0%") == ["100% of it"]
        assert await found("_") == []


@pytest.mark.parametrize("search", ["É", "é", "e\u0301t", "ÉTERNEL straße", "éternel STRASSE"])
async def test_a_title_is_found_whatever_letters_are_capital_or_accented(tmp_path: Path, search: str) -> None:
    async with launch(tmp_path, ScriptedModel(context_window=BIG)) as running:
        wanted = await running.workspace.create_session(CreateSession(title="Éternel in der Straße"))
        await running.workspace.create_session(CreateSession(title="Eternel"))
        page = await running.workspace.ledger.sessions(limit=9, after=None, search=search)
        assert [session.id for session in page.items] == [wanted.id]


async def test_faces_ask_for_all_of_this_over_http(tmp_path: Path) -> None:
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        session = await served.session(workspace)
        answer = await served.unix.get(f"{workspace}/sessions/{session}/todos")
        assert answer.json() == {"session_id": session, "items": []}
        accepted = await served.unix.post(f"{workspace}/sessions/{session}/shell", json={"command": "echo over http"})
        assert accepted.status_code == 202
        run = await served.unix.get(accepted.headers["location"], params={"wait": 30})
        assert run.json()["outcome"] == "end_turn"
        page = (await served.unix.get(f"{workspace}/sessions/{session}/messages", params={"before": ""})).json()
        assert "over http" in page["items"][2]["parts"][0]["content"]
        found = await served.unix.get(f"{workspace}/sessions", params={"q": "echo", "top": "true"})
        assert [item["id"] for item in found.json()["items"]] == [session]
        models = (await served.unix.get(f"{workspace}/models")).json()
        assert models["large"] is None
        assert "nobody" in models["problem"]
        assert {item["name"].partition("/")[0] for item in models["items"]} >= {"anthropic", "openai"}
        for what in ("todos", "messages"):
            gone = await served.unix.get(f"{workspace}/sessions/nobody/{what}")
            assert (gone.status_code, gone.json()["code"]) == (404, SessionNotFound.code)
        assert (await served.unix.post(f"{workspace}/sessions/{session}/shell", json={})).status_code == 400

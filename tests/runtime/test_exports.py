"""Export and import: one document with all of a session, and a session from such a document, or from none."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from checks import check_requests, check_transcript, locked_store, replayed
from running_app import RunningApp, launch

from longboat.backoff import Backoff
from longboat.core.history import calls_of
from longboat.errors import BadInput, NothingToUndo, SessionNotFound, StoreUnavailable
from longboat.runtime.archive.imports import parse
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, Think, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.archive import FORMAT_VERSION, ExportedChange, FileContent, SessionExport
from longboat.wire.models import Outcome, Session, ToolResultPart
from longboat.wire.requests import Approve, Summarize

BIG = 100_000


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def story() -> ScriptedModel:
    return ScriptedModel(
        [
            [call("write", path="new.txt", content="one\n"), call("todos", items=[{"text": "paint"}])],
            [Think("hm"), Say("Written."), Use(input_tokens=10, output_tokens=3)],
            [Say("The sum.")],
            [Say("after")],
        ],
        context_window=BIG,
    )


async def told(running: RunningApp) -> SessionExport:
    """A session with calls, a plan, a changed file and a summary, exported."""
    await running.submit("Write a file", "r1", approve=Approve.ALL)
    await running.completed("r1")
    await running.workspace.summarize_session(running.session_id, Summarize(run_id="s"))
    await running.completed("s")
    return await running.workspace.archive.export(running.session_id)


def without_ids(document: SessionExport) -> Any:
    """What a document says, whatever the ids and the time of its export."""
    names: dict[str, int] = {}

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: plain(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        return names.setdefault(value, len(names)) if key == "run_id" else value

    found = plain(json.loads(msgspec.json.encode(document)))
    for each in (found, *found["sub_agents"]):
        for message, place in zip(each["messages"], range(1, 1000), strict=False):
            if message["seq"] == each["summary_seq"]:
                each["summary_seq"] = place
            message["seq"] = place
        for thing in (each, each["session"], *each["messages"], *each["runs"]):
            for key in (*OWN, *(["seq"] if "outcome" in thing else ())):
                thing.pop(key, None)
        for key in ("created_at", "updated_at"):
            del each["session"][key]
    return found


OWN = ("id", "session_id", "exported_at", "parent_id", "parent_run_id", "parent_session_id")


async def imported(running: RunningApp, document: SessionExport) -> Session:
    return await running.workspace.archive.take(msgspec.json.encode(document))


async def test_a_session_survives_export_and_import_whole(tmp_path: Path) -> None:
    """A second export says the same; the model goes on from the same; nothing of the first session is touched."""
    model = story()
    async with launch(tmp_path, model) as running:
        document = await told(running)
        assert document.changes == (
            ExportedChange(run_id="r1", path="new.txt", before=None, after=FileContent(text="one\n")),
        )
        assert [run.run_id for run in document.runs] == ["r1", "s"]
        session = await imported(running, document)
        again = await running.workspace.archive.export(session.id)
        assert without_ids(again) == without_ids(document)
        assert session.usage == document.session.usage
        assert replayed(running.watcher.events, session.id) == list(await running.messages(session.id))
        check_transcript(await running.messages(session.id))
        untouched = await running.workspace.archive.export(running.session_id)
        assert msgspec.structs.replace(untouched, exported_at=document.exported_at) == document
        await running.submit("go on", "r2", session_id=session.id)
        assert (await running.completed("r2")).text == "after"
        assert "The sum." in str(model.requests[-1].messages[0].parts)
        check_requests(model.requests)


async def test_an_import_takes_its_numbers_on_the_loop_and_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by chaos: with PostgreSQL, it failed inside the server."""
    async with launch(tmp_path, story()) as running:
        document = await told(running)
        take = running.workspace.store.next_seq
        monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0.0))
        asked: list[asyncio.AbstractEventLoop] = []

        def take_the_second_time() -> int:
            asked.append(asyncio.get_running_loop())
            if len(asked) == 1:
                raise StoreUnavailable("none left")
            return take()

        monkeypatch.setattr(running.workspace.store, "next_seq", take_the_second_time)
        await imported(running, document)
        assert len(asked) == 1 + len(document.runs)


async def test_another_workspace_takes_the_document_and_no_undo_there_writes_its_files(tmp_path: Path) -> None:
    """A4: what was changed elsewhere is to be looked at only."""
    async with launch(tmp_path, story()) as running:
        document = await told(running)
        other, _ = await running.app.join(str(_made(tmp_path / "other")), None)
        session = await other.archive.take(msgspec.json.encode(document))
        (diff,) = (await other.browse.diff(session_id=session.id, run_id=None)).items
        assert (diff.path, diff.additions) == ("new.txt", 1)
        (other.directory / "new.txt").write_text("one\n")
        for _ in range(2):
            assert (await other.undo_turn(session.id)).files == ()
        assert (other.directory / "new.txt").read_text() == "one\n"
        with pytest.raises(NothingToUndo):
            await other.undo_turn(session.id)
        assert len((await other.archive.export(session.id)).changes) == 0, "what was undone is left out"


def _made(path: Path) -> Path:
    path.mkdir()
    (path / "longboat.json").write_text('{"titles": false}')
    return path


async def test_bytes_that_are_no_text_come_through(tmp_path: Path) -> None:
    async with launch(tmp_path, story()) as running:
        document = await told(running)
        raw = FileContent(data="/wD+")
        change = ExportedChange(run_id="r1", path="raw.bin", before=raw, after=None)
        session = await imported(running, msgspec.structs.replace(document, changes=(change,)))
        (again,) = (await running.workspace.archive.export(session.id)).changes
        assert (again.path, again.before, again.after) == ("raw.bin", raw, None)


async def test_an_export_has_what_is_finished_and_leaves_out_the_turn_under_way(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("one")], [Say("half"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("first", "r1")
        await running.completed("r1")
        await running.submit("second", "r2")
        await gate.reached()
        document = await running.workspace.archive.export(running.session_id)
        assert [run.run_id for run in document.runs] == ["r1"]
        assert {message.run_id for message in document.messages} == {"r1"}
        parse(msgspec.json.encode(document))
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r2")
        with pytest.raises(SessionNotFound):
            await running.workspace.archive.export("nope")


async def test_a_canceled_turn_can_be_exported_and_imported(tmp_path: Path) -> None:
    """T3: what was broken off was closed."""
    gate = Gate()
    model = ScriptedModel([[Say("half"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("first", "r1")
        await gate.reached()
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")
        session = await imported(running, await running.workspace.archive.export(running.session_id))
        page = await running.workspace.runs(state=None, session_id=session.id, limit=9, after=None)
        assert [run.outcome for run in page.items] == [Outcome.CANCELED]


def _with(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *way, last = path.split(".")
        inner: Any = document
        for step in way:
            inner = inner[int(step) if step.isdigit() else step]
        if value is DROP:
            del inner[int(last) if last.isdigit() else last]
        else:
            inner[int(last) if last.isdigit() else last] = value

    return change


def sending() -> ScriptedModel:
    """One that sends two sub-agents at once, one of which looks around, and sums up what they said."""

    def answer(request: Any) -> Any:
        prompt = last_prompt(request)
        results = sum(isinstance(part, ToolResultPart) for part in request.messages[-1].parts)
        if prompt in ("bow", "stern"):
            if prompt == "bow" and not results:
                return [call("ls")]
            return [Say(f"The {prompt} is fine."), Use(input_tokens=5, output_tokens=2)]
        if not results:
            return [call("agent", prompt="bow"), call("agent", prompt="stern")]
        return [Say("All is well.")]

    return ScriptedModel(answer, context_window=BIG)


async def sent(running: RunningApp, run_id: str = "r1") -> SessionExport:
    await running.submit("Look at the boat", run_id, approve=Approve.ALL)
    await running.completed(run_id)
    return await running.workspace.archive.export(running.session_id)


async def children_of(running: RunningApp, session_id: str) -> list[Session]:
    page = await running.workspace.ledger.sessions(limit=50, after=None)
    return sorted(
        (session for session in page.items if session.parent_id == session_id), key=lambda session: session.title
    )


async def test_sub_agents_come_along_and_stand_under_their_calls(tmp_path: Path) -> None:
    """Issue 3: an export is complete. Their runs are their sender's, and go with it when it is deleted."""
    async with launch(tmp_path, sending()) as running:
        document = await sent(running)
        assert sorted(each.session.title for each in document.sub_agents) == ["bow", "stern"]
        session = await imported(running, document)
        calls = [part.id for message in await running.messages(session.id) for part in calls_of(message)]
        bow, stern = await children_of(running, session.id)
        assert sorted([bow.parent_call_id, stern.parent_call_id]) == sorted(calls)
        (origin, _) = await children_of(running, running.session_id)
        assert (bow.parent_call_id, bow.usage) == (origin.parent_call_id, origin.usage)
        assert [part for each in await running.messages(bow.id) for part in each.parts] == [
            part for each in await running.messages(origin.id) for part in each.parts
        ]
        (run,) = (await running.workspace.runs(state=None, session_id=bow.id, limit=9, after=None)).items
        (top,) = (await running.workspace.runs(state=None, session_id=session.id, limit=9, after=None)).items
        assert (run.parent_run_id, run.parent_session_id) == (top.run_id, session.id)
        events = [event for event in running.watcher.events if getattr(event.payload, "session_id", None) == bow.id]
        assert {event.parent_session_id for event in events} == {session.id}
        again = await running.workspace.archive.export(session.id)
        assert without_ids(again) == without_ids(document)
        await running.workspace.delete_session(session.id)
        assert await children_of(running, session.id) == []


async def test_a_sub_agent_of_a_turn_that_was_undone_or_is_under_way_is_left_out(tmp_path: Path) -> None:
    gate = Gate()
    model = sending()
    async with launch(tmp_path, model) as running:
        await sent(running)
        await running.workspace.undo_turn(running.session_id)
        document = await running.workspace.archive.export(running.session_id)
        assert (document.messages, document.sub_agents) == ((), ())
        await running.workspace.redo_turn(running.session_id)
        document = await running.workspace.archive.export(running.session_id)
        assert len(document.sub_agents) == 2
    waiting = ScriptedModel(
        lambda request: [Pause(gate)] if last_prompt(request) == "bow" else [call("agent", prompt="bow")],
        context_window=BIG,
    )
    async with launch(tmp_path, waiting) as running:
        await running.submit("Look at the boat", "r9")
        await gate.reached()
        assert (await running.workspace.archive.export(running.session_id)).sub_agents == ()
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r9")
        document = await running.workspace.archive.export(running.session_id)
        assert [run.outcome for each in document.sub_agents for run in each.runs] == [Outcome.CANCELED]
        await imported(running, document)


async def test_sub_agents_that_cannot_be_are_refused(tmp_path: Path) -> None:
    broken = {
        "a sender that is not there": _with("sub_agents.0.session.parent_id", "nobody"),
        "a call that is not there": _with("sub_agents.0.session.parent_call_id", "nothing"),
        "no sender": _with("sub_agents.0.session.parent_id", None),
        "one twice": lambda document: document["sub_agents"].append(document["sub_agents"][0]),
        "one that is its own sender": lambda document: document["sub_agents"][0]["session"].update(
            parent_id=document["sub_agents"][0]["session"]["id"]
        ),
        "a run of somebody else": _with("sub_agents.0.runs.0.run_id", "r1"),
        "an unfinished run": _with("sub_agents.0.runs.0.state", "active"),
        "messages out of order": _with("sub_agents.0.messages.0.seq", 99),
        "too much usage": _with("sub_agents.0.session.usage.cost", -1),
        "no list": _with("sub_agents", {}),
    }
    async with launch(tmp_path, sending()) as running:
        whole = msgspec.json.encode(await sent(running))
        codes = {}
        for name, change in broken.items():
            document = json.loads(whole)
            change(document)
            codes[name] = await _refused(running, json.dumps(document).encode())
        assert codes == dict.fromkeys(codes, "bad_export")


async def test_who_canceled_a_run_comes_along(tmp_path: Path) -> None:
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("half"), Pause(gate)]], context_window=BIG)) as running:
        await running.submit("first", "r1")
        await gate.reached()
        await running.workspace.cancel_session(running.session_id, "anna")
        await running.completed("r1")
        session = await imported(running, await running.workspace.archive.export(running.session_id))
        (run,) = (await running.workspace.runs(state=None, session_id=session.id, limit=9, after=None)).items
        assert run.canceled_by == "anna"


async def test_the_markdown_has_what_the_sub_agents_said(tmp_path: Path) -> None:
    async with launch(tmp_path, sending()) as running:
        await sent(running)
        lines = (await running.workspace.archive.markdown(running.session_id)).splitlines()
        heads = [line for line in lines if line.startswith("#")]
        assert sorted(line for line in heads if "Sub-agent" in line) == ["## Sub-agent: bow", "## Sub-agent: stern"]
        assert "### Answer (scripted/scripted)" in heads
        assert "The stern is fine." in lines


DROP = object()
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FILE = {"type": "file", "name": "a", "media_type": "application/pdf"}

BROKEN = {
    "another format": _with("format", "tarball"),
    "no session": _with("session", DROP),
    "messages out of order": _with("messages.0.seq", 99),
    "an unfinished message": _with("messages.0.finished_at", None),
    "no instant": _with("messages.0.created_at", "yesterday"),
    "an instant without a zone": _with("runs.0.accepted_at", "2026-01-01T00:00:00"),
    "a call without its result": _with("messages.2.parts", []),
    "a missing tool message": _with("messages.2", DROP),
    "a call that is no JSON": _with("messages.1.parts.0.input", "{"),
    "an unfinished run": _with("runs.0.state", "active"),
    "a run twice": lambda document: document["runs"].append(document["runs"][0]),
    "a summary that is not there": _with("summary_seq", 77),
    "a negative usage": _with("session.usage.input_tokens", -1),
    "a wait of less than no time": _with("runs.0.waited_s", -1),
    "a usage too large to keep": _with("session.usage.input_tokens", 2**70),
    "a content that is nothing": _with("changes.0.after", {}),
    "a content that is no base64": _with("changes.0.after", {"data": "*"}),
    "a path that is none": _with("changes.0.path", "a\0b"),
    "a path too long to be": _with("changes.0.path", "a" * 5_000),
    "a title too long": _with("session.title", "t" * 501),
    "too many todos": _with("todos", [{"text": "t"}] * 101),
    "an empty todo": _with("todos.0.text", ""),
    "a todo too long": _with("todos.0.text", "t" * 501),
    "a broken image": _with("messages.2.parts.0.images", [{"media_type": "image/png", "data": "iVBORw0KGgo="}]),
    "an image of another kind": _with("messages.2.parts.0.images", [{"media_type": "text/html", "data": DOT}]),
    "a broken picture in a prompt": _with("messages.0.parts", [{**FILE, "media_type": "image/png", "data": "aGk="}]),
    "a file that is no base64": _with("messages.0.parts", [{**FILE, "data": "*"}]),
    "a file that is nothing": _with("messages.0.parts", [FILE]),
    "an unknown part": _with("messages.0.parts.0.type", "dance"),
}


async def test_broken_documents_are_refused_with_their_code_and_leave_nothing_behind(tmp_path: Path) -> None:
    async with launch(tmp_path, story()) as running:
        whole = msgspec.json.encode(await told(running))
        sessions = await running.workspace.ledger.sessions(limit=9, after=None)
        codes = {}
        for name, change in BROKEN.items():
            document = json.loads(whole)
            change(document)
            codes[name] = await _refused(running, json.dumps(document).encode())
        codes["half of it"] = await _refused(running, whole[: len(whole) // 2])
        codes["a list"] = await _refused(running, b"[1]")
        codes["nothing"] = await _refused(running, b"")
        codes["a lone surrogate"] = await _refused(running, whole.replace(b"Write a file", b"\\ud800", 1))
        codes["very deep"] = await _refused(running, b"[" * 100_000)
        assert codes == dict.fromkeys(codes, "bad_export")
        newer = whole.replace(b'"version":%d' % FORMAT_VERSION, b'"version":%d' % (FORMAT_VERSION + 1))
        assert await _refused(running, newer) == "export_version"
        assert await running.workspace.ledger.sessions(limit=9, after=None) == sessions


async def _refused(running: RunningApp, raw: bytes) -> str:
    with pytest.raises(BadInput) as refused:
        await running.workspace.archive.take(raw)
    return refused.value.code


async def test_whole_images_and_a_title_with_control_characters_come_through(tmp_path: Path) -> None:
    """A title may be a prompt's first line. What would move a terminal's cursor becomes a space."""
    async with launch(tmp_path, story()) as running:
        document = json.loads(msgspec.json.encode(await told(running)))
        document["session"]["title"] = "a\tb\x1b[31m\nc"
        document["messages"][2]["parts"][0]["images"] = [{"media_type": "image/png", "data": DOT}]
        document["messages"][0]["parts"].append({**FILE, "media_type": "image/png", "data": DOT})
        session = await running.workspace.archive.take(json.dumps(document).encode())
        assert session.title == "a b [31m c"
        assert str(await running.messages(session.id)).count(DOT) == 2


async def test_an_import_that_the_store_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    """One transaction."""
    async with launch(tmp_path, story()) as running:
        document = await told(running)
        sessions = await running.workspace.ledger.sessions(limit=9, after=None)
        with locked_store(running), pytest.raises(StoreUnavailable):
            await imported(running, document)
        assert await running.workspace.ledger.sessions(limit=9, after=None) == sessions
        await imported(running, document)


async def test_the_markdown_shows_prompts_answers_calls_and_diffs_and_no_fence_breaks(tmp_path: Path) -> None:
    model = ScriptedModel(
        [[call("write", path="a.md", content="```\n<b>\n")], [Say("Done **well**.")]], context_window=BIG
    )
    async with launch(tmp_path, model) as running:
        await running.submit("Write it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        page = await running.workspace.archive.markdown(running.session_id)
        lines = page.splitlines()
        assert lines[0] == "# Write it"
        assert [line for line in lines if line.startswith("## ")] == [
            "## Prompt",
            "## Answer (scripted/scripted)",
            "## Answer (scripted/scripted)",
            "## Changed files",
        ]
        assert "Done **well**." in lines
        assert "<details><summary>Call: write</summary>" in lines
        assert page.count("<details>") == page.count("</details>") == 2
        start = lines.index("````diff")
        assert lines[start + 1 : start + 6] == ["--- /dev/null", "+++ b/a.md", "@@ -0,0 +1,2 @@", "+```", "+<b>"]
        assert lines[start + 6] == "````"


async def test_long_results_are_cut_in_the_markdown(tmp_path: Path) -> None:
    model = ScriptedModel([[call("bash", command="seq 5000")], [Say("ok")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("count", "r1", approve=Approve.ALL)
        await running.completed("r1")
        page = await running.workspace.archive.markdown(running.session_id)
        assert len(page) < 10_000
        assert "more lines)" in page

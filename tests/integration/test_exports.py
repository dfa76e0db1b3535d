"""Export and import: one document with all of a session, and a session from such a document, or from none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from boat import Boat, launch
from checks import check_requests, check_transcript, locked_store, replayed

from longboat.errors import BadInput, NothingToUndo, SessionNotFound, StoreUnavailable
from longboat.runtime.imports import parse
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, Think, Use
from longboat.wire.archive import FORMAT_VERSION, ExportedChange, FileContent, SessionExport
from longboat.wire.models import Outcome, Session
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


async def told(boat: Boat) -> SessionExport:
    """A session with calls, a plan, a changed file and a summary, exported."""
    await boat.submit("Write a file", "r1", approve=Approve.ALL)
    await boat.completed("r1")
    await boat.workspace.summarize_session(boat.session_id, Summarize(run_id="s"))
    await boat.completed("s")
    return await boat.workspace.archive.export(boat.session_id)


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
    for message, place in zip(found["messages"], range(1, 1000), strict=False):
        if message["seq"] == found["summary_seq"]:
            found["summary_seq"] = place
        message["seq"] = place
    for thing in (found, found["session"], *found["messages"], *found["runs"]):
        for key in ("id", "session_id", "exported_at", *(["seq"] if "outcome" in thing else ())):
            thing.pop(key, None)
    for key in ("created_at", "updated_at"):
        del found["session"][key]
    return found


async def imported(boat: Boat, document: SessionExport) -> Session:
    return await boat.workspace.archive.take(msgspec.json.encode(document))


async def test_a_session_survives_export_and_import_whole(tmp_path: Path) -> None:
    """A second export says the same; the model goes on from the same; nothing of the first session is touched."""
    model = story()
    async with launch(tmp_path, model) as boat:
        document = await told(boat)
        assert document.changes == (
            ExportedChange(run_id="r1", path="new.txt", before=None, after=FileContent(text="one\n")),
        )
        assert [run.run_id for run in document.runs] == ["r1", "s"]
        session = await imported(boat, document)
        again = await boat.workspace.archive.export(session.id)
        assert without_ids(again) == without_ids(document)
        assert session.usage == document.session.usage
        assert replayed(boat.watcher.events, session.id) == list(await boat.messages(session.id))
        check_transcript(await boat.messages(session.id))
        untouched = await boat.workspace.archive.export(boat.session_id)
        assert msgspec.structs.replace(untouched, exported_at=document.exported_at) == document
        await boat.submit("go on", "r2", session_id=session.id)
        assert (await boat.completed("r2")).text == "after"
        assert "The sum." in str(model.requests[-1].messages[0].parts)
        check_requests(model.requests)


async def test_another_workspace_takes_the_document_and_no_undo_there_writes_its_files(tmp_path: Path) -> None:
    """A4: what was changed elsewhere is to be looked at only."""
    async with launch(tmp_path, story()) as boat:
        document = await told(boat)
        other, _ = await boat.app.join(str(_made(tmp_path / "other")), None)
        session = await other.archive.take(msgspec.json.encode(document))
        (diff,) = (await other.sights.diff(session_id=session.id, run_id=None)).items
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
    async with launch(tmp_path, story()) as boat:
        document = await told(boat)
        raw = FileContent(data="/wD+")
        change = ExportedChange(run_id="r1", path="raw.bin", before=raw, after=None)
        session = await imported(boat, msgspec.structs.replace(document, changes=(change,)))
        (again,) = (await boat.workspace.archive.export(session.id)).changes
        assert (again.path, again.before, again.after) == ("raw.bin", raw, None)


async def test_an_export_has_what_is_finished_and_leaves_out_the_turn_under_way(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("one")], [Say("half"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as boat:
        await boat.submit("first", "r1")
        await boat.completed("r1")
        await boat.submit("second", "r2")
        await gate.reached()
        document = await boat.workspace.archive.export(boat.session_id)
        assert [run.run_id for run in document.runs] == ["r1"]
        assert {message.run_id for message in document.messages} == {"r1"}
        parse(msgspec.json.encode(document))
        await boat.workspace.cancel_session(boat.session_id)
        await boat.completed("r2")
        with pytest.raises(SessionNotFound):
            await boat.workspace.archive.export("nope")


async def test_a_canceled_turn_can_be_exported_and_imported(tmp_path: Path) -> None:
    """T3: what was broken off was closed."""
    gate = Gate()
    model = ScriptedModel([[Say("half"), Pause(gate)]], context_window=BIG)
    async with launch(tmp_path, model) as boat:
        await boat.submit("first", "r1")
        await gate.reached()
        await boat.workspace.cancel_session(boat.session_id)
        await boat.completed("r1")
        session = await imported(boat, await boat.workspace.archive.export(boat.session_id))
        page = await boat.workspace.runs(state=None, session_id=session.id, limit=9, after=None)
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
    async with launch(tmp_path, story()) as boat:
        whole = msgspec.json.encode(await told(boat))
        sessions = await boat.workspace.ledger.sessions(limit=9, after=None)
        codes = {}
        for name, change in BROKEN.items():
            document = json.loads(whole)
            change(document)
            codes[name] = await _refused(boat, json.dumps(document).encode())
        codes["half of it"] = await _refused(boat, whole[: len(whole) // 2])
        codes["a list"] = await _refused(boat, b"[1]")
        codes["nothing"] = await _refused(boat, b"")
        codes["a lone surrogate"] = await _refused(boat, whole.replace(b"Write a file", b"\\ud800", 1))
        codes["very deep"] = await _refused(boat, b"[" * 100_000)
        assert codes == dict.fromkeys(codes, "bad_export")
        newer = whole.replace(b'"version":%d' % FORMAT_VERSION, b'"version":%d' % (FORMAT_VERSION + 1))
        assert await _refused(boat, newer) == "export_version"
        assert await boat.workspace.ledger.sessions(limit=9, after=None) == sessions


async def _refused(boat: Boat, raw: bytes) -> str:
    with pytest.raises(BadInput) as refused:
        await boat.workspace.archive.take(raw)
    return refused.value.code


async def test_whole_images_and_a_title_with_control_characters_come_through(tmp_path: Path) -> None:
    """A title may be a prompt's first line. What would move a terminal's cursor becomes a space."""
    async with launch(tmp_path, story()) as boat:
        document = json.loads(msgspec.json.encode(await told(boat)))
        document["session"]["title"] = "a\tb\x1b[31m\nc"
        document["messages"][2]["parts"][0]["images"] = [{"media_type": "image/png", "data": DOT}]
        document["messages"][0]["parts"].append({**FILE, "media_type": "image/png", "data": DOT})
        session = await boat.workspace.archive.take(json.dumps(document).encode())
        assert session.title == "a b [31m c"
        assert str(await boat.messages(session.id)).count(DOT) == 2


async def test_an_import_that_the_store_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    """One transaction."""
    async with launch(tmp_path, story()) as boat:
        document = await told(boat)
        sessions = await boat.workspace.ledger.sessions(limit=9, after=None)
        with locked_store(boat), pytest.raises(StoreUnavailable):
            await imported(boat, document)
        assert await boat.workspace.ledger.sessions(limit=9, after=None) == sessions
        await imported(boat, document)


async def test_the_markdown_shows_prompts_answers_calls_and_diffs_and_no_fence_breaks(tmp_path: Path) -> None:
    model = ScriptedModel(
        [[call("write", path="a.md", content="```\n<b>\n")], [Say("Done **well**.")]], context_window=BIG
    )
    async with launch(tmp_path, model) as boat:
        await boat.submit("Write it", "r1", approve=Approve.ALL)
        await boat.completed("r1")
        page = await boat.workspace.archive.markdown(boat.session_id)
        lines = page.splitlines()
        assert lines[0] == "# Write it"
        assert [line for line in lines if line.startswith("## ")] == [
            "## Prompt",
            "## Answer (scripted/scripted)",
            "## Answer (scripted/scripted)",
            "## Changed files",
        ]
        assert "Done **well**." in lines
        assert "<details><summary>Call of write</summary>" in lines
        assert page.count("<details>") == page.count("</details>") == 2
        start = lines.index("````diff")
        assert lines[start + 1 : start + 6] == ["--- /dev/null", "+++ b/a.md", "@@ -0,0 +1,2 @@", "+```", "+<b>"]
        assert lines[start + 6] == "````"


async def test_long_results_are_cut_in_the_markdown(tmp_path: Path) -> None:
    model = ScriptedModel([[call("bash", command="seq 5000")], [Say("ok")]], context_window=BIG)
    async with launch(tmp_path, model) as boat:
        await boat.submit("count", "r1", approve=Approve.ALL)
        await boat.completed("r1")
        page = await boat.workspace.archive.markdown(boat.session_id)
        assert len(page) < 10_000
        assert "more lines)" in page

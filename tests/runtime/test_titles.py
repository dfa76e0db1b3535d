"""Titles: found by the small model beside the run. Nothing waits for one, nothing fails with one, and people win."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from checks import check_ends
from running_app import RunningApp, launch

from longboat.core.prompts import TITLE_SYSTEM
from longboat.errors import ModelError
from longboat.models.protocol import ModelRequest
from longboat.testing import Fail, Gate, Hang, Pause, Say, ScriptedModel, Step, Think, Use
from longboat.wire.models import Attachment, Outcome, Usage
from longboat.wire.requests import CreateSession, UpdateSession

TITLES_ON = '{"retry": {"base_s": 0}}'


def namer(answer: Step | Callable[[], Step], provider: str = "scripted") -> ScriptedModel:
    """A model that answers prompts with "ok", and requests for a title with this."""

    def play(request: ModelRequest) -> Step:
        if request.system != TITLE_SYSTEM:
            return [Say("ok")]
        return answer() if callable(answer) else answer

    return ScriptedModel(play, provider=provider)


def asked(model: ScriptedModel) -> int:
    return sum(request.system == TITLE_SYSTEM for request in model.requests)


async def found(running: RunningApp) -> None:
    """Wait until no title is being looked for."""
    searching = [task for task in running.workspace.services.tasks.pending if task.get_name().startswith("title")]
    if searching:
        await asyncio.wait(searching)


async def title(running: RunningApp) -> str:
    return (await running.workspace.session(running.session_id)).title


async def test_a_session_is_named_after_its_first_prompt_and_then_better(tmp_path: Path) -> None:
    """A9: first its first line, at once, then what the small model finds; later prompts change nothing."""
    model = namer([Say('"Mending '), Say('the boat."\nI hope you like it')])
    async with launch(tmp_path, model, config=TITLES_ON) as running:
        await running.submit("\n  The boat leaks.  \nPlease mend it", "r1")
        await running.completed("r1")
        await found(running)
        assert await title(running) == "Mending the boat"
        await running.submit("Something else", "r2")
        await running.completed("r2")
        await found(running)
        assert asked(model) == 1
        await running.watcher.until(lambda event: event.type == "session" and event.payload.title == "Mending the boat")
        titles = [session.title for session in running.watcher.of("session")]
        assert list(dict.fromkeys(titles)) == ["The boat leaks.", "Mending the boat"]
        stored = await running.workspace.ledger.sessions(limit=1, after=None)
        assert [session.title for session in stored.items] == ["Mending the boat"]
        await check_ends(running)


@pytest.mark.parametrize("step", [[Fail(ModelError("no"))], [Say("half"), Fail(ModelError("no"))], [Say("  \n ")]])
async def test_a_title_that_cannot_be_found_does_not_touch_the_run(tmp_path: Path, step: Step) -> None:
    """A9: an error at once, an error in the middle, an empty answer; the provisional title stays."""
    async with launch(tmp_path, namer(step), config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        await found(running)
        assert await title(running) == "Mend it"
        await check_ends(running)


async def test_a_defect_in_finding_a_title_does_not_touch_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A9: it is logged, and that is all."""

    def defect() -> Step:
        raise ZeroDivisionError("a defect")

    async with launch(tmp_path, namer(defect), config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        await found(running)
        assert "a defect" in caplog.text
        assert await title(running) == "Mend it"
        await check_ends(running)


async def test_nothing_waits_for_a_title(tmp_path: Path) -> None:
    """A9, T6: the run ends, the session is idle, cancel does nothing, the next run works, and the server can stop."""
    model = namer([Hang()])
    async with launch(tmp_path, model, config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        await running.completed("r1")
        assert not (await running.workspace.session_status(running.session_id)).busy
        assert (await running.workspace.cancel_session(running.session_id)).canceled == ()
        await running.submit("Go on", "r2")
        assert (await running.completed("r2")).text == "ok"
        await check_ends(running)
    assert model.abandoned == 1


async def test_a_persons_title_wins(tmp_path: Path) -> None:
    """A9: whoever renames the session while a title is being looked for keeps what was typed."""
    gate = Gate()
    async with launch(tmp_path, namer([Pause(gate), Say("The model's idea")]), config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        await gate.reached()
        renamed = await running.workspace.update_session(running.session_id, UpdateSession(title="Mine"))
        assert renamed.title == "Mine"
        gate.open()
        await found(running)
        assert await title(running) == "Mine"
        await running.completed("r1")
        await check_ends(running)


async def test_a_session_that_has_a_title_keeps_it(tmp_path: Path) -> None:
    """A9: given at its creation."""
    model = namer([Say("The model's idea")])
    async with launch(tmp_path, model, config=TITLES_ON) as running:
        session = await running.workspace.create_session(CreateSession(title="Given"))
        await running.submit("Mend it", "r1", session_id=session.id)
        await running.completed("r1")
        assert (await running.workspace.session(session.id)).title == "Given"
        assert asked(model) == 0


@pytest.mark.parametrize(
    ("config", "provider"), [('{"titles": false}', "scripted"), (TITLES_ON, "local")], ids=["off", "local model"]
)
async def test_no_title_is_asked_for_when_it_should_not_be(tmp_path: Path, config: str, provider: str) -> None:
    """A9: switched off, or a model that can do one thing at a time. The first line serves."""
    model = namer([Say("never")], provider)
    async with launch(tmp_path, model, config=config) as running:
        await running.submit("Mend it\nsoon", "r1")
        await running.completed("r1")
        await found(running)
        assert asked(model) == 0
        assert await title(running) == "Mend it"
        await check_ends(running)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (
            [*[Say("on and ")] * 1_000, Hang()],
            ("on and " * 12)[:80].rstrip(),
        ),
        ([*[Think("hm, ")] * 20_000, Hang()], "Mend it"),
    ],
    ids=["words", "thoughts"],
)
async def test_a_model_that_never_stops_is_not_listened_to_for_ever(tmp_path: Path, step: Step, named: str) -> None:
    """A9: what it said so far serves, and its stream is closed."""
    model = namer(step)
    async with launch(tmp_path, model, config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        await running.completed("r1")
        await found(running)
        assert await title(running) == named
        assert model.abandoned == 1
        await check_ends(running)


async def test_titles_are_short(tmp_path: Path) -> None:
    """A9: both kinds, and a prompt that is only an attachment has one too."""
    async with launch(tmp_path, namer([Say("t" * 500)]), config=TITLES_ON) as running:
        await running.submit("p" * 500, "r1")
        await running.completed("r1")
        await found(running)
        assert await title(running) == "t" * 80
        assert "p" * 80 in [session.title for session in running.watcher.of("session")]
        other = await running.workspace.create_session(CreateSession())
        notes = Attachment(name="a.txt", media_type="text/plain", text="notes")
        await running.submit("", "r2", session_id=other.id, attachments=(notes,))
        await running.completed("r2")
        titles = [session.title for session in running.watcher.of("session") if session.id == other.id]
        assert "Attachment" in titles
        await found(running)


@pytest.mark.parametrize("words", ["The model's idea", " "], ids=["named", "nothing said"])
async def test_what_a_title_costs_is_the_sessions_and_its_first_runs(tmp_path: Path, words: str) -> None:
    """A6, A9: tokens and cost are counted, on the stream, on disk and in the statistics, even if no title came."""
    spent = Use(input_tokens=30, output_tokens=4, cost=0.5)
    async with launch(tmp_path, namer([spent, Say(words)]), config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        await running.completed("r1")
        await found(running)
        usage = Usage(input_tokens=30, output_tokens=4, cost=0.5)
        assert (await running.workspace.session(running.session_id)).usage == usage
        await running.watcher.until(lambda event: event.type == "session" and event.payload.usage == usage)
        stored = await running.workspace.ledger.sessions(limit=1, after=None)
        assert [session.usage for session in stored.items] == [usage]
        figures = await running.app.stats(running.workspace.id, days=1)
        assert figures.usage == usage
        await check_ends(running)


async def test_what_a_title_costs_is_counted_though_a_person_was_faster(tmp_path: Path) -> None:
    """A6, A9: the words are dropped, the bill is not."""
    gate = Gate()
    spent = Use(input_tokens=30, output_tokens=4, cost=0.5)
    async with launch(tmp_path, namer([Pause(gate), spent, Say("The model's idea")]), config=TITLES_ON) as running:
        await running.submit("Mend it", "r1")
        await gate.reached()
        await running.completed("r1")
        await running.workspace.update_session(running.session_id, UpdateSession(title="Mine"))
        gate.open()
        await found(running)
        session = await running.workspace.session(running.session_id)
        assert (session.title, session.usage.cost) == ("Mine", 0.5)
        await check_ends(running)

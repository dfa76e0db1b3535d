"""Web Push: what is sent to whom, that only the browser can read it, and that a push service holds up nothing."""

import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import terminal_attacks
from inboxes import follow_inbox
from push_service import PushService, Subscriber, open_push_service
from running_app import RunningApp, launch

from cases import for_each
from hostile import PAYLOADS
from longboat.backoff import Backoff
from longboat.config.settings import PushSection, ServerSection
from longboat.errors import BadInput, StoreUnavailable
from longboat.runtime.push_messages import BODY, KEY_FILE, encrypt, text_of
from longboat.store.reading.reads import QueriedReads
from longboat.store.records import PushSubscription
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.wire.inbox import InboxItem, InboxKind, PushKeys, Subscribe
from longboat.wire.plain import plain_line
from longboat.wire.requests import AnswerQuestion

ALLOWED = ServerSection(push=PushSection(allowed_networks=("127.0.0.0/8",), contact="mailto:ann@example.org"))
QUESTION = CallTool("question", '{"text": "Which one?"}')


@asynccontextmanager
async def subscribed(
    tmp_path: Path, *steps: Any, server: ServerSection = ALLOWED
) -> AsyncIterator[tuple[RunningApp, PushService, Subscriber]]:
    """A running app, a push service, and the browser of ann that is subscribed there."""
    async with open_push_service() as service, launch(tmp_path, ScriptedModel(list(steps)), server=server) as running:
        running.app.push.retry = Backoff(base_s=0, attempts=3)
        browser = Subscriber()
        await running.app.push.subscribe(wish(service, browser))
        yield running, service, browser


def wish(service: PushService, browser: Subscriber, path: str = "/ann", who: str = "ann:web") -> Subscribe:
    return Subscribe(client_id=who, endpoint=service.url + path, keys=PushKeys(**browser.keys))


async def test_what_waits_is_pushed_signed_and_sealed_for_the_browser(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [QUESTION]) as (running, service, browser):
        await running.submit("go", "r1", client_id="ben")
        pushed = await service.pushed.get()
        assert pushed.path == "/ann"
        assert browser.decrypt(pushed.body) == {
            "id": "1",
            "title": "Longboat has a question",
            "body": "project: Which one?",
        }
        assert b"Which one" not in pushed.body
        claims = pushed.claims
        assert (claims["aud"], claims["sub"]) == (service.url, "mailto:ann@example.org")
        assert claims["key"] == (await running.app.push.info()).public_key
        assert pushed.headers["content-encoding"] == "aes128gcm"
        assert (pushed.headers["ttl"], pushed.headers["urgency"]) == ("86400", "high")


async def test_no_push_says_that_something_was_answered_elsewhere(tmp_path: Path) -> None:
    """Browsers want a visible notification for every push: the page closes the first one itself."""
    async with subscribed(tmp_path, [QUESTION], [Say("Done.")], [Say("ok")]) as (running, service, browser):
        await running.submit("go", "r1", client_id="ben")
        asked = await service.pushed.get()
        assert (browser.decrypt(asked.body)["id"], asked.headers["topic"]) == ("1", "longboat-1")
        await answer(running)
        await running.completed("r1")
        await running.submit("go", "r2", client_id="ann")
        ended = browser.decrypt((await service.pushed.get()).body)
        assert (ended["id"], ended["title"]) == ("3", "Run finished"), "what comes next is the next news"


async def test_what_was_answered_before_it_could_be_pushed_is_not_pushed(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [Say("ok")], [QUESTION], [Say("Done.")], [Say("ok")]) as (
        running,
        service,
        browser,
    ):
        service.answers.clear()
        await running.submit("go", "r1", client_id="ann")
        assert browser.decrypt((await service.pushed.get()).body)["id"] == "1"
        await running.submit("go", "r2", client_id="ben")
        async with follow_inbox(running.app) as ann:
            await ann.until(lambda mirror: mirror.waiting == 1)
        await answer(running)
        await running.completed("r2")
        await running.submit("go", "r3", client_id="ann")
        await running.completed("r3")
        service.answers.set()
        assert browser.decrypt((await service.pushed.get()).body)["title"] == "Run finished"


async def answer(running: RunningApp) -> None:
    """Answer the question that waits, as ben."""
    page = await running.app.inbox.page("ben", before=None, limit=10)
    (question,) = [item.question for item in page.items if item.question is not None]
    await running.workspace.asks.answer_question(question.id, AnswerQuestion(answer=("this",), client_id="ben"))


async def test_a_store_that_cannot_be_read_at_the_start_costs_no_later_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = QueriedReads.push_subscriptions, asyncio.Event()

    async def busy(reads: QueriedReads) -> list[PushSubscription]:
        if not refused.is_set():
            refused.set()
            raise StoreUnavailable("The disk is busy.")
        return await real(reads)

    monkeypatch.setattr(QueriedReads, "push_subscriptions", busy)
    monkeypatch.setattr("longboat.runtime.store_retry.BACKOFF", Backoff(base_s=0))
    async with open_push_service() as service, launch(tmp_path, ScriptedModel([[QUESTION]]), server=ALLOWED) as running:
        await refused.wait()
        browser = Subscriber()
        await running.app.push.subscribe(wish(service, browser))
        await running.submit("go", "r1", client_id="ben")
        assert browser.decrypt((await service.pushed.get()).body)["id"] == "1"


@pytest.mark.parametrize(
    "damage", ["p256dh = 'x'", "auth = x'ff'", "endpoint = CAST(x'ff' AS TEXT)", "endpoint = 'https://[x/'"]
)
async def test_a_damaged_subscription_costs_its_own_browser_alone(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with subscribed(tmp_path, [QUESTION], [QUESTION]) as (running, service, _):
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        await asyncio.to_thread(_change, store._path, f"UPDATE push_subscriptions SET {damage}")
        browser = Subscriber()
        await running.app.push.subscribe(wish(service, browser, "/second"))
        for name in ("r1", "r2"):
            await running.submit("go", name, client_id="ben")
            pushed = await service.pushed.get()
            assert (pushed.path, browser.decrypt(pushed.body)["title"]) == ("/second", "Longboat has a question")
            await running.workspace.cancel_session(running.session_id)
            await running.completed(name)
        assert "Traceback" not in caplog.text


def _change(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()


async def test_a_key_that_cannot_be_used_is_named_and_holds_up_no_run(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [Say("ok")], [Say("ok")]) as (running, service, _):
        key = running.app.settings.data_dir / KEY_FILE
        key.mkdir()
        with pytest.raises(StoreUnavailable, match=KEY_FILE):
            await running.app.push.info()
        await running.submit("go", "r1", client_id="ann")
        await running.completed("r1")
        key.rmdir()
        await running.submit("go", "r2", client_id="ann")
        await running.completed("r2")
        await service.pushed.get()


async def test_the_end_of_a_run_is_pushed_to_whoever_prompted_it(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [Say("one")], [Say("two")]) as (running, service, browser):
        await running.submit("go", "r1", client_id="ben:cli")
        await running.completed("r1")
        await running.submit("go", "r2", client_id="ann:tui-1")
        text = browser.decrypt((await service.pushed.get()).body)
        assert (text["id"], text["title"]) == ("2", "Run finished")
        assert service.pushed.empty()


async def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        both = await asyncio.gather(running.app.push.info(), running.app.push.info())
        file = tmp_path / "data" / KEY_FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with launch(tmp_path, ScriptedModel()) as running:
        assert {*both, await running.app.push.info()} == {both[0]}


@pytest.mark.parametrize("content", ["", "rubbish", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
async def test_a_damaged_key_is_made_again(tmp_path: Path, content: str) -> None:
    """It used to be an internal error, for ever."""
    async with launch(tmp_path, ScriptedModel([])) as running:
        file = running.app.settings.data_dir / KEY_FILE
        file.write_text(content)
        assert (await running.app.push.info()).public_key
        assert file.read_text().startswith("-----BEGIN")
        assert len(file.read_text()) > 100
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_is_gone_is_forgotten(tmp_path: Path, status: int) -> None:
    async with subscribed(tmp_path, [QUESTION], [Say("ok")]) as (running, service, browser):
        service.statuses = [status]
        await running.submit("go", "r1")
        await service.pushed.get()
        while await running.workspace.store.reads.push_subscriptions():  # noqa: ASYNC110 — the other side is a thread
            await asyncio.sleep(0)
        # Subscribed anew, it hears of what comes from then on.
        await running.app.push.subscribe(wish(service, browser))


async def test_a_failing_service_is_tried_again_a_few_times_and_then_left_alone(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [QUESTION], [Say("ok")]) as (running, service, browser):
        service.statuses = [503, 429, 500, 201]
        await running.submit("go", "r1", client_id="ann")
        ids = [browser.decrypt((await service.pushed.get()).body)["id"] for _ in range(3)]
        assert ids == ["1", "1", "1"]
        await running.workspace.cancel_session(running.session_id)
        await running.submit("again", "r2", client_id="ann")
        assert browser.decrypt((await service.pushed.get()).body)["id"] == "2"


async def test_a_refusal_that_will_not_pass_is_not_repeated(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [Say("ok")], [Say("ok")]) as (running, service, browser):
        service.statuses = [403]
        for name in ("r1", "r2"):
            await running.submit("go", name, client_id="ann")
            await running.completed(name)
        ids = [browser.decrypt((await service.pushed.get()).body)["id"] for _ in range(2)]
        assert ids == ["1", "2"]


async def test_a_service_that_does_not_answer_holds_up_neither_runs_nor_others(tmp_path: Path) -> None:
    async with (
        subscribed(tmp_path, [Say("ok")], [Say("ok")]) as (running, slow, _),
        open_push_service() as quick,
    ):
        slow.answers.clear()
        browser = Subscriber()
        await running.app.push.subscribe(wish(quick, browser, "/quick"))
        for name in ("r1", "r2"):
            await running.submit("go", name, client_id="ann")
            await running.completed(name)
        ids = [browser.decrypt((await quick.pushed.get()).body)["id"] for _ in range(2)]
        assert ids == ["1", "2"]
        await slow.pushed.get()
        assert slow.pushed.empty(), "it waits for the first answer"


async def test_who_unsubscribes_hears_no_more_and_nothing_is_watched(tmp_path: Path) -> None:
    async with subscribed(tmp_path, [Say("ok")]) as (running, service, _):
        await running.app.push.unsubscribe(service.url + "/ann")
        async with follow_inbox(running.app) as ann:
            await running.submit("go", "r1", client_id="ann")
            await ann.until(lambda mirror: mirror.unseen == 1)
        assert running.workspace.store._publisher._watcher is None  # type: ignore[attr-defined]
        assert service.pushed.empty()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:1/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://localhost/x",
        "http://93.184.216.34/x",
        "ftp://93.184.216.34/x",
        "https://user:pw@93.184.216.34/x",
        "nonsense",
    ],
)
async def test_only_public_endpoints_with_https_are_taken(tmp_path: Path, endpoint: str) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        request = Subscribe(client_id="ann", endpoint=endpoint, keys=PushKeys(**Subscriber().keys))
        with pytest.raises(BadInput) as refused:
            await running.app.push.subscribe(request)
        assert refused.value.code == "bad_endpoint"
        assert await running.workspace.store.reads.push_subscriptions() == []


async def test_a_public_endpoint_with_https_is_taken(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        keys = PushKeys(**Subscriber().keys)
        await running.app.push.subscribe(Subscribe(client_id="ann", endpoint="https://93.184.216.34/x", keys=keys))
        assert len(await running.workspace.store.reads.push_subscriptions()) == 1


@pytest.mark.parametrize(
    "keys",
    [
        {"p256dh": "A" * 88, "auth": Subscriber().keys["auth"]},
        {"p256dh": Subscriber().keys["p256dh"], "auth": "A" * 20},
    ],
)
async def test_keys_that_encrypt_nothing_are_refused(tmp_path: Path, keys: dict[str, str]) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        request = Subscribe(client_id="ann", endpoint="https://93.184.216.34/x", keys=PushKeys(**keys))
        with pytest.raises(BadInput) as refused:
            await running.app.push.subscribe(request)
        assert refused.value.code == "bad_push_keys"


PATHS = ("/home/ann/" + PAYLOADS[0], "/", "/home/ann/\x1b]0;x\x07")


@for_each("text", (*PAYLOADS, *terminal_attacks.PAYLOADS, "a\nb\r\nc", "x" * 100_000, "\U0001f600" * 5_000))
def test_what_others_wrote_is_pushed_as_one_line_of_plain_text(text: str) -> None:
    for path in PATHS:
        item = InboxItem(
            id="7",
            kind=InboxKind.FAILED,
            workspace_id="w",
            workspace_path=path,
            session_id="s",
            session_title=text,
            run_id="r",
            at="2026-01-01T00:00:00.000000Z",
            seen=False,
            text=text,
            error=text,
        )
        told = text_of(item)
        assert (told.id, told.title) == ("7", "Run failed")
        assert told.body == plain_line(told.body)
        assert len(told.body) <= BODY + 42
        sealed = encrypt(told, SUBSCRIPTION)
        assert BROWSER.decrypt(sealed) == {"id": told.id, "title": told.title, "body": told.body}
        assert len(sealed) < 4_096


BROWSER = Subscriber()
SUBSCRIPTION = PushSubscription(endpoint="https://push.example.org/x", person="ann", **BROWSER.keys)

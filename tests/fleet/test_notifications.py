"""How nodes reach people together (G2): one key, one sender for each notification, and everyone who can answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
import pytest
from bench import unit
from node_pairs import QUESTION, Pair, open_pair
from postgres import database_of
from push_service import PushService, Subscriber, open_push_service

from longboat.config.settings import PushSection
from longboat.errors import StoreUnavailable
from longboat.fleet.node import Node
from longboat.runtime.inbox import Inbox
from longboat.runtime.push import Push
from longboat.runtime.push_messages import KEY_FILE, ServerKey
from longboat.store.changes import put_ask
from longboat.store.postgres.store import PostgresStore
from longboat.tasks import Tasks
from longboat.wire.inbox import InboxItem, PushKeys, Subscribe

SETTINGS = PushSection(allowed_networks=("127.0.0.0/8",))


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return database_of(tmp_path)


@pytest.fixture
async def pair(dsn: str) -> AsyncIterator[Pair]:
    async with open_pair(dsn) as both:
        yield both


@pytest.fixture
async def service() -> AsyncIterator[PushService]:
    async with open_push_service() as opened:
        yield opened


def pusher(at: tuple[Node, PostgresStore], data_dir: Path) -> tuple[Push, Inbox]:
    node, store = at
    inbox = Inbox(store, heartbeat_s=60, on_listeners=lambda: None, poll_s=0.01, notifications=node.notifications)
    return Push(store, inbox, SETTINGS, data_dir, notifications=node.notifications), inbox


@asynccontextmanager
async def pushing(at: tuple[Node, PostgresStore], data_dir: Path) -> AsyncIterator[Push]:
    push, inbox = pusher(at, data_dir)
    async with Tasks() as tasks:
        running = tasks.spawn(push.run(), name="push", awaited=True)
        yield push
        inbox.close()
        await running


def wish(service: PushService, browser: Subscriber, path: str = "/ann") -> Subscribe:
    return Subscribe(client_id="ann:web", endpoint=service.url + path, keys=PushKeys(**browser.keys))


async def ask(store: PostgresStore, name: str) -> None:
    question = msgspec.structs.replace(QUESTION, id=name, text=name)
    await store.submit(unit(put_ask("w", question)))


# The key


async def test_g2_nodes_that_make_the_key_at_once_have_the_same(pair: Pair, tmp_path: Path) -> None:
    (one, _), (other, _) = pusher(pair[0], tmp_path), pusher(pair[1], tmp_path)
    keys = await asyncio.gather(one.info(), other.info())
    assert keys[0] == keys[1]
    assert not (tmp_path / KEY_FILE).exists()


async def test_g2_the_key_of_a_server_that_was_alone_is_kept_so_its_browsers_stay_subscribed(
    pair: Pair, tmp_path: Path
) -> None:
    alone = await asyncio.to_thread(ServerKey.load, tmp_path)
    (one, _), (other, _) = pusher(pair[0], tmp_path), pusher(pair[1], Path("/nowhere"))
    assert (await one.info()).public_key == alone.public
    assert (await other.info()).public_key == alone.public


async def test_a_damaged_key_in_the_store_is_named(pair: Pair, dsn: str, tmp_path: Path) -> None:
    client = await asyncpg.connect(dsn)
    await client.execute("INSERT INTO push_key (pem) VALUES ('rubbish')")
    await client.close()
    with pytest.raises(StoreUnavailable, match="push_key"):
        await pusher(pair[0], tmp_path)[0].info()


# Who sends


async def test_g2_each_item_is_sent_by_one_node_though_all_look_for_it(
    pair: Pair, service: PushService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    for node, _ in pair:
        take = node.notifications.take_items

        async def noted(*, limit: int, take=take) -> list[InboxItem]:  # type: ignore[no-untyped-def]
            items: list[InboxItem] = await take(limit=limit)
            taken.extend(item.id for item in items)
            return items

        monkeypatch.setattr(node.notifications, "take_items", noted)
    browser = Subscriber()
    names = [f"q{n}" for n in range(15)]
    async with pushing(pair[0], tmp_path) as push, pushing(pair[1], tmp_path):
        await push.subscribe(wish(service, browser))
        for name in names:
            await ask(pair[0][1], name)
        heard = [browser.decrypt((await service.pushed.get()).body) for _ in names]
    assert sorted(each["body"] for each in heard) == sorted(f"w: {name}" for name in names)
    assert sorted(taken) == sorted({each["id"] for each in heard}), "each of them once"
    assert service.pushed.empty()


async def test_g2_an_item_of_an_owner_that_died_before_it_could_send_it_is_sent_by_another_node(
    pair: Pair, service: PushService, tmp_path: Path
) -> None:
    """It subscribed a browser too, which the other node has never heard of."""
    browser = Subscriber()
    async with pushing(pair[1], tmp_path):
        dead, _ = pusher(pair[0], tmp_path)
        await dead.subscribe(wish(service, browser))
        await ask(pair[0][1], "q")
        assert browser.decrypt((await service.pushed.get()).body)["body"] == "w: q"


async def test_g2_a_browser_that_is_unsubscribed_at_one_node_hears_no_more_from_another(
    pair: Pair, service: PushService, tmp_path: Path
) -> None:
    browser = Subscriber()
    async with pushing(pair[1], tmp_path):
        other, _ = pusher(pair[0], tmp_path)
        for path in ("/first", "/second"):
            await other.subscribe(wish(service, browser, path))
        await ask(pair[0][1], "q1")
        assert sorted([(await service.pushed.get()).path for _ in range(2)]) == ["/first", "/second"]
        await other.unsubscribe(service.url + "/first")
        for name in ("q2", "q3"):
            await ask(pair[0][1], name)
        assert [(await service.pushed.get()).path for _ in range(2)] == ["/second", "/second"]


async def test_what_came_before_the_first_subscription_is_not_sent(
    pair: Pair, service: PushService, tmp_path: Path
) -> None:
    browser = Subscriber()
    async with pushing(pair[1], tmp_path) as push:
        await ask(pair[0][1], "old")
        await push.subscribe(wish(service, browser))
        await ask(pair[0][1], "new")
        assert browser.decrypt((await service.pushed.get()).body)["body"] == "w: new"


# Who can answer


async def test_g2_whoever_can_answer_at_the_inbox_of_one_node_is_reachable_for_all_at_once(
    pair: Pair, tmp_path: Path
) -> None:
    (a, _), (b, _) = pair
    _, inbox = pusher(pair[1], tmp_path)
    async with inbox.stream("ann", answers=False) as watching:
        await anext(watching)
        assert not await a.notifications.is_someone_reachable()
        async with inbox.stream("ann", answers=True) as frames:
            await anext(frames)
            assert await a.notifications.is_someone_reachable()
    await b.notifications.publish_answering()
    assert not await a.notifications.is_someone_reachable()


async def test_g2_a_person_at_a_node_that_died_is_not_reachable_and_a_subscribed_browser_is(
    pair: Pair, dsn: str, service: PushService, tmp_path: Path
) -> None:
    (a, _), _ = pair
    push, inbox = pusher(pair[1], tmp_path)
    async with inbox.stream("ann", answers=True) as frames:
        await anext(frames)
        client = await asyncpg.connect(dsn)
        await client.execute("UPDATE nodes SET until = clock_timestamp() - interval '1 second' WHERE name = 'b'")
        await client.close()
        assert not await a.notifications.is_someone_reachable()
        await push.subscribe(wish(service, Subscriber()))
        assert await a.notifications.is_someone_reachable()
        await push.unsubscribe(service.url + "/ann")
        assert not await a.notifications.is_someone_reachable()

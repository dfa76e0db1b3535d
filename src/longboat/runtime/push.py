"""Web Push: notifies subscribed browsers of new inbox items, even while their page is closed.

Owns the subscriptions and the deliveries. Every subscriber hears about requests that need an answer; only the person
who sent a prompt hears about the end of its run. Each browser has its own short queue and its own task, so a slow push
service delays nothing else. A push never withdraws a notification: browsers want a visible one for each push, and
Safari forgets subscriptions whose pushes show none. The page closes its notifications itself.

Servers that share a store share the work: the server that takes an item from the store's queue sends it, to the
subscriptions that the store has by then. Without subscribers, this loads no library, and a server alone reads nothing.
"""

import asyncio
import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from longboat.backoff import Backoff
from longboat.config.settings import PushSection
from longboat.errors import BadInput, StoreUnavailable
from longboat.runtime.clock import now
from longboat.runtime.inbox import SERVER, Inbox
from longboat.runtime.ownership import SharedNotifications
from longboat.runtime.store_retry import retry_store
from longboat.store.changes import delete_subscription, put_subscription
from longboat.store.protocol import Store, Unit
from longboat.store.records import PushSubscription
from longboat.tasks import Tasks
from longboat.wire.ids import check_own_id, person
from longboat.wire.inbox import InboxItem, PushInfo, Subscribe

if TYPE_CHECKING:
    from longboat.runtime.push_messages import ServerKey
    from longboat.tools.web.http import Web

logger = logging.getLogger(__name__)

MOST_SUBSCRIPTIONS = 200
QUEUE = 20
"""Maximum number of messages waiting for one browser; the oldest are dropped."""
PAGE = 100
TIMEOUT_S = 10.0
RETRY = Backoff(base_s=2.0, factor=4.0, attempts=4)
GONE = (404, 410)
"""The browser has unsubscribed, or its profile is gone."""
PASSING = (408, 425, 429, 500, 502, 503, 504)


class Push:
    def __init__(
        self,
        store: Store,
        inbox: Inbox,
        settings: PushSection,
        data_dir: Path,
        *,
        notifications: SharedNotifications | None = None,
    ) -> None:
        """`notifications`: other servers use the store too."""
        self._store = store
        self._inbox = inbox
        self._settings = settings
        self._data_dir = data_dir
        self._notifications = notifications
        self._loading = asyncio.Lock()
        self._key: ServerKey | None = None
        self._web: Web | None = None
        self._subscriptions: dict[str, PushSubscription] = {}
        self._wanted = asyncio.Event()
        self._place = 0
        """Inbox items up to here were announced, or are older than the oldest subscription."""
        self._queues: dict[str, deque[InboxItem]] = {}
        self._tasks = Tasks()
        self.retry = RETRY

    @property
    def reaches_someone(self) -> bool:
        """Whether anyone would get a push message about a question, if no other server uses the store."""
        return bool(self._subscriptions)

    async def info(self) -> PushInfo:
        return PushInfo(public_key=(await self._server_key()).public)

    async def subscribe(self, request: Subscribe) -> None:
        """Remember a browser. If it is already known, replace its keys."""
        from longboat.runtime.push_messages import check_keys

        name = person(check_own_id(request.client_id, field="client_id"))
        subscription = PushSubscription(
            endpoint=request.endpoint, person=name, p256dh=request.keys.p256dh, auth=request.keys.auth
        )
        await asyncio.to_thread(check_keys, subscription)
        await self._check_endpoint(request.endpoint)
        writes = put_subscription(subscription, now(), most=MOST_SUBSCRIPTIONS)
        await self._store.submit(Unit(workspace_id=SERVER, writes=writes))
        await self._load()

    async def unsubscribe(self, endpoint: str) -> None:
        await self._store.submit(Unit(workspace_id=SERVER, writes=[delete_subscription(endpoint)]))
        await self._load()

    async def run(self) -> None:
        """Notify the subscribers until the server leaves."""
        try:
            await retry_store(self._load)
            if self._notifications is not None:
                await self._tell_what_is_queued(self._notifications)
            while not self._inbox.closed:
                await self._wanted.wait()
                await self._tell_subscribers()
        finally:
            await self._tasks.aclose()

    async def _tell_subscribers(self) -> None:
        """Run until there are no subscribers left, or the server leaves."""
        with self._inbox.watch():
            while self._subscriptions and not self._inbox.closed:
                version = self._inbox.version
                try:
                    self._place, items = await self._store.reads.inbox_after(self._place, limit=PAGE)
                except StoreUnavailable as error:
                    logger.warning("cannot read what to push: %s", error.message)
                    items = []
                for item in items:
                    self._tell(item)
                if not items:
                    await self._inbox.wait_changed(version)

    async def _tell_what_is_queued(self, notifications: SharedNotifications) -> None:
        """Run until the server leaves. Usually the server that wrote an item takes it, since it looks first."""
        with self._inbox.watch():
            while not self._inbox.closed:
                version = self._inbox.version
                try:
                    items = await notifications.take_items(limit=PAGE)
                except StoreUnavailable as error:
                    logger.warning("cannot read what to push: %s", error.message)
                    items = []
                if items:
                    await retry_store(self._load)  # any server may have changed them
                    for item in items:
                        self._tell(item)
                else:
                    await self._inbox.wait_changed(version)

    def _tell(self, item: InboxItem) -> None:
        prompted_by = person(item.client_id) if item.client_id is not None else None
        for subscription in self._subscriptions.values():
            if item.kind.waits or subscription.person == prompted_by:
                self._enqueue(subscription, item)

    def _enqueue(self, subscription: PushSubscription, item: InboxItem) -> None:
        queue = self._queues.get(subscription.endpoint)
        if queue is None:
            queue = self._queues[subscription.endpoint] = deque(maxlen=QUEUE)
            self._tasks.spawn(self._deliver_all(subscription, queue), name="push")
        queue.append(item)

    async def _deliver_all(self, subscription: PushSubscription, queue: deque[InboxItem]) -> None:
        try:
            while queue and subscription.endpoint in self._subscriptions:
                await self._deliver(subscription, queue.popleft())
        except StoreUnavailable as error:
            logger.warning("not pushed: %s", error.message)
        except (AttributeError, TypeError, ValueError) as error:
            logger.warning("a push subscription is damaged, and nothing is sent to it: %s", error)
            self._subscriptions.pop(subscription.endpoint, None)
        finally:
            del self._queues[subscription.endpoint]

    async def _deliver(self, subscription: PushSubscription, item: InboxItem) -> None:
        """Try a few times. Forget a browser that is gone."""
        where, failures = urlsplit(subscription.endpoint).hostname, 0
        while await self._is_news(item):
            status = await self._send(subscription, item)
            if status in GONE:
                logger.info("a browser at %s is no longer subscribed", where)
                await self.unsubscribe(subscription.endpoint)
                return
            if status is not None and 200 <= status < 300:
                return
            failures += 1
            if (status is not None and status not in PASSING) or self.retry.gives_up(failures):
                logger.warning("the push service %s did not accept a message: %s", where, status or "no answer")
                return
            await asyncio.sleep(self.retry.delay(failures))

    async def _is_news(self, item: InboxItem) -> bool:
        """False if someone has answered it or its run has ended, so no one needs to hear of it."""
        if not item.kind.waits:
            return True
        try:
            return bool(await self._store.reads.inbox_waiting([int(item.id)]))
        except StoreUnavailable:
            return True

    async def _send(self, subscription: PushSubscription, item: InboxItem) -> int | None:
        """Return the status of the push service's response; None if there was none."""
        from longboat.runtime.push_messages import TTL_S, encrypt, text_of
        from longboat.tools.context import ToolError

        key = await self._server_key()
        body = await asyncio.to_thread(encrypt, text_of(item), subscription)
        headers = {
            "Authorization": key.sign(subscription.endpoint, self._settings.contact),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Topic": f"longboat-{item.id}",  # sent twice, a browser that is away gets it once
            "Urgency": "high" if item.kind.waits else "normal",
        }
        try:
            return await self._opened_web().post(subscription.endpoint, body=body, headers=headers)
        except ToolError as error:
            logger.info("not pushed: %s", error)
            return None

    async def _check_endpoint(self, endpoint: str) -> None:
        """Raise unless it is public and uses https, or is in a network that the configuration allows."""
        from longboat.tools.context import ToolError

        try:
            await self._opened_web().check_post(endpoint)
        except ToolError as error:
            raise BadInput(str(error), code="bad_endpoint") from None

    def _opened_web(self) -> "Web":
        if self._web is None:
            from longboat.tools.web.http import Web

            self._web = Web(allowed_networks=self._settings.allowed_networks, timeout_s=TIMEOUT_S)
        return self._web

    async def _server_key(self) -> "ServerKey":
        async with self._loading:  # two at once must not make two keys
            if self._key is None:
                self._key = await (
                    self._own_key() if self._notifications is None else self._shared_key(self._notifications)
                )
            return self._key

    async def _own_key(self) -> "ServerKey":
        from longboat.runtime.push_messages import ServerKey

        try:
            return await asyncio.to_thread(ServerKey.load, self._data_dir)
        except OSError as error:
            why = f"{error.filename or self._data_dir}: {error.strerror or error}"
            raise StoreUnavailable(f"The key that signs notifications cannot be used ({why}).") from error

    async def _shared_key(self, notifications: SharedNotifications) -> "ServerKey":
        from longboat.runtime.push_messages import ServerKey, propose_key

        kept = await notifications.push_key(await asyncio.to_thread(propose_key, self._data_dir))
        try:
            return ServerKey.from_pem(kept)
        except ValueError as error:
            why = "it is damaged: delete it from the table push_key; browsers then have to subscribe again"
            raise StoreUnavailable(f"The key that signs notifications cannot be used ({why}).") from error

    async def _load(self) -> None:
        found = await self._store.reads.push_subscriptions()
        if found and not self._subscriptions and self._notifications is None:
            self._place, _ = await self._store.reads.inbox_after(None, limit=PAGE)
        self._subscriptions = {subscription.endpoint: subscription for subscription in found}
        if found:
            self._wanted.set()
        else:
            self._wanted.clear()
            self._inbox.wake()

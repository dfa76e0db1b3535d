"""The push messages for a browser: the text, its encryption for that browser, and the signature that tells a push
service which server sent it (RFC 8291, RFC 8292).

Owns the server's key and its file. Loads the libraries when the first browser subscribes. Must not know who gets the
messages.
"""

import base64
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from longboat import regular_files
from longboat.errors import BadInput
from longboat.store.records import PushSubscription
from longboat.wire.inbox import InboxItem, InboxKind
from longboat.wire.plain import plain_line

if TYPE_CHECKING:
    from py_vapid import Vapid02

logger = logging.getLogger(__name__)

KEY_FILE = "push-key.pem"
TTL_S = 86_400
"""How long a push service keeps a message for a browser that is away."""
SIGNED_S = 12 * 3_600
BODY = 200
"""How much of a text to show, in characters."""

_TITLES = {
    InboxKind.PERMISSION: "Approval needed",
    InboxKind.QUESTION: "Longboat has a question",
    InboxKind.FAILED: "Run failed",
    InboxKind.FINISHED: "Run finished",
}


class PushText(msgspec.Struct, frozen=True, kw_only=True):
    """What the page's service worker gets. Plain text, bounded: much of it was written by a model."""

    id: str
    title: str
    body: str


def text_of(item: InboxItem) -> PushText:
    """Write the text of a notification."""
    if item.permission is not None:
        about = item.permission.title
    elif item.question is not None:
        about = item.question.text
    else:
        about = item.error or item.session_title or item.text
    directory = plain_line(item.workspace_path).rpartition("/")[2][:40]
    line = plain_line(about[: 4 * BODY])
    short = line if len(line) <= BODY else line[: BODY - 1] + "…"
    return PushText(id=item.id, title=_TITLES[item.kind], body=f"{directory}: {short}" if directory else short)


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The server's VAPID key: browsers accept only messages signed with it."""

    vapid: "Vapid02"
    public: str
    """Base64url without padding."""

    @classmethod
    def load(cls, data_dir: Path) -> "ServerKey":
        """Load the key of this data directory. Makes a new one the first time, or if the key is damaged; browsers then
        have to subscribe again. Call it in a thread: it takes a moment."""
        path = data_dir / KEY_FILE
        try:
            return cls.from_pem(regular_files.read(path, 10_000))
        except (FileNotFoundError, ValueError) as error:
            if isinstance(error, ValueError):
                logger.warning("%s is damaged: making a new key; browsers have to subscribe again", path)
            made = _make_pem()
            _write_private(path, made)
            return cls.from_pem(made)

    @classmethod
    def from_pem(cls, pem: bytes) -> "ServerKey":
        """Raises ValueError if it is damaged."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        from py_vapid import Vapid02

        vapid = Vapid02.from_pem(pem)
        public = vapid.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return cls(vapid, base64.urlsafe_b64encode(public).rstrip(b"=").decode())

    def sign(self, endpoint: str, contact: str) -> str:
        """Return the Authorization header of a request to this push service."""
        parts = urlsplit(endpoint)
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int(time.time()) + SIGNED_S, "sub": contact}
        headers: Mapping[str, str] = self.vapid.sign(claims)
        return headers["Authorization"]


def propose_key(data_dir: Path) -> bytes:
    """For servers that share a key: the one that this server had when it was alone, or else a new one."""
    try:
        kept = regular_files.read(data_dir / KEY_FILE, 10_000)
        ServerKey.from_pem(kept)
    except (OSError, ValueError):
        return _make_pem()
    return kept


def _make_pem() -> bytes:
    from py_vapid import Vapid02

    vapid = Vapid02()
    vapid.generate_keys()
    pem: bytes = vapid.private_pem()
    return pem


def _write_private(path: Path, content: bytes) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def check_keys(subscription: PushSubscription) -> None:
    """Raise unless a message can be encrypted for this browser."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    try:
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), _decoded(subscription.p256dh))
        usable = len(_decoded(subscription.auth)) == 16
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(
            "These are not the keys of a push subscription. Send p256dh and auth as the browser returns them.",
            code="bad_push_keys",
        )


def encrypt(text: PushText, subscription: PushSubscription) -> bytes:
    """Encrypt the body of the request: only this browser can read it."""
    import http_ece
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    sealed: bytes = http_ece.encrypt(
        msgspec.json.encode(text),
        private_key=generate_private_key(SECP256R1()),
        dh=_decoded(subscription.p256dh),
        auth_secret=_decoded(subscription.auth),
        version="aes128gcm",
    )
    return sealed


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))

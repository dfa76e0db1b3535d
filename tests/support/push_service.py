"""A push service on the loopback, and a browser's side of a subscription: it decrypts what arrives, by RFC 8291 itself
and not by the library that the server encrypts with."""

import asyncio
import base64
import hmac
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True)
class Pushed:
    """A request to the push service."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def claims(self) -> dict[str, Any]:
        """What the server's signature says of it; raises if it is not signed by the key that it names."""
        told = dict(part.strip().split("=", 1) for part in self.headers["authorization"].split(" ", 1)[1].split(","))
        head, claims, signature = told["t"].split(".")
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw(told["k"]))
        both = raw(signature)
        encoded = utils.encode_dss_signature(int.from_bytes(both[:32]), int.from_bytes(both[32:]))
        key.verify(encoded, f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
        found: dict[str, Any] = json.loads(raw(claims)) | {"key": told["k"]}
        return found


@dataclass
class Subscriber:
    """A browser: its keys, and what it reads in a message."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = b"0123456789abcdef"

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def keys(self) -> dict[str, str]:
        return {"p256dh": b64(self.public), "auth": b64(self.auth)}

    def decrypt(self, body: bytes) -> dict[str, Any]:
        salt, (size, length) = body[:16], struct.unpack("!IB", body[16:21])
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(sealed) <= size, "one record"
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = _hkdf(self.auth, shared, b"WebPush: info\0" + self.public + sender, 32)
        key = _hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, sealed, None)
        text: dict[str, Any] = json.loads(padded.rstrip(b"\0").removesuffix(b"\x02"))
        return text


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    extracted = hmac.digest(salt, secret, sha256)
    return hmac.digest(extracted, info + b"\x01", sha256)[:length]


@dataclass
class PushService:
    """Takes messages; answers with `statuses` in turn, then with 201."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    pushed: "asyncio.Queue[Pushed]" = field(default_factory=asyncio.Queue)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Clear it to keep requests waiting."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.pushed.put_nowait(Pushed(path=line.split()[1], headers=headers, body=body))
        await self.answers.wait()
        status = self.statuses.pop(0) if self.statuses else 201
        writer.write(f"HTTP/1.1 {status} Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def open_push_service() -> AsyncIterator[PushService]:
    service = PushService()
    service.answers.set()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        service.answers.set()
        server.close()

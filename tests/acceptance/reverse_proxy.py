"""A real nginx with TLS and the very examples of docs/deploy/, with a name and ports of ours.

It is at 127.0.0.2, a name that servers know by `server.allowed_hosts` alone. Its sockets are opened here and handed
down, so that no other test can take their ports in between.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cli_home import GIVE_UP_S
from processes import Site
from sessions import SessionClient

from parts import how, missing, where
from secrecy import SECRETS, CheckedTransport

needs_nginx = [pytest.mark.skipif(missing(part), reason=how(part)) for part in ("nginx", "openssl")]

EXAMPLES = Path(__file__).parents[2] / "docs" / "deploy"
NAME = "127.0.0.2"
OUTSIDE = """
{user} daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    include {example};
}}
"""
"""What a distribution's nginx.conf is around the example."""


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """One that runs, and how to come to it."""

    url: str
    plain_url: str
    certificate: Path

    def open(self, **options: Any) -> httpx2.AsyncClient:
        """A client of our own that trusts the certificate."""
        trust = ssl.create_default_context(cafile=self.certificate)
        heard = CheckedTransport(httpx2.AsyncHTTPTransport(verify=trust))
        return httpx2.AsyncClient(transport=heard, base_url=self.url, timeout=GIVE_UP_S, **options)


async def certificate(folder: Path) -> tuple[Path, Path]:
    """One that is its own authority, and its key."""
    made, key = folder / "fullchain.pem", folder / "privkey.pem"
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=longboat"
    names = ["-addext", f"subjectAltName=IP:{NAME}", "-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    maker = await asyncio.create_subprocess_exec(
        "openssl", *request.split(), *names, "-keyout", str(key), "-out", str(made), stderr=asyncio.subprocess.PIPE
    )
    _, said = await maker.communicate()
    assert maker.returncode == 0, said.decode()
    return made, key


def bound() -> socket.socket:
    sock = socket.create_server((NAME, 0), backlog=128)
    sock.setblocking(False)
    return sock


@asynccontextmanager
async def nginx(site: Site, changes: Mapping[str, str], *, name: str = "nginx.conf") -> AsyncIterator[Proxy]:
    """nginx with an example from the docs, in the home of a site; `changes` are further replacements in it."""
    folder = site.path / "nginx"
    folder.mkdir()
    made, key = await certificate(folder)
    with bound() as tls, bound() as plain:
        placeholders = {
            "listen 443 ssl http2;": f"listen {NAME}:{tls.getsockname()[1]} ssl http2;",
            "listen 80;": f"listen {NAME}:{plain.getsockname()[1]};",
            "/etc/letsencrypt/live/longboat.example.org/fullchain.pem": str(made),
            "/etc/letsencrypt/live/longboat.example.org/privkey.pem": str(key),
            "longboat.example.org": NAME,
            **changes,
        }
        example = filled(EXAMPLES / name, placeholders)
        (folder / "longboat.conf").write_text(example)
        user = "user root;" if os.geteuid() == 0 else ""  # its own could not read what is private to the test
        (folder / "nginx.conf").write_text(OUTSIDE.format(user=user, example=folder / "longboat.conf"))
        command = [str(where("nginx")), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        handed = (tls.fileno(), plain.fileno())
        environ = {"NGINX": "".join(f"{each};" for each in handed), "PATH": os.environ["PATH"]}
        urls = [f"{scheme}://{NAME}:{s.getsockname()[1]}" for scheme, s in (("https", tls), ("http", plain))]
        with site.log.open("ab") as log:
            started = await asyncio.create_subprocess_exec(*command, env=environ, pass_fds=handed, stderr=log)
    try:
        yield Proxy(url=urls[0], plain_url=urls[1], certificate=made)
    finally:
        started.terminate()  # not the site's way: killed, it would leave its worker behind
        await started.wait()


def filled(example: Path, placeholders: dict[str, str]) -> str:
    text = example.read_text(encoding="utf-8")
    for placeholder, value in placeholders.items():
        assert placeholder in text, f"{example.name} has no {placeholder!r} any more"
        text = text.replace(placeholder, value)
    return text


async def far_session(site: Site, proxy: Proxy, directory: Path) -> SessionClient:
    """A session as a client on the other side of the proxy has it."""
    http = await site.clients.enter_async_context(proxy.open(headers=site.headers))
    joined = await http.post("/v1/workspaces", json={"path": str(directory)})
    assert joined.status_code in (200, 201), joined.text
    return await SessionClient.create(http, f"/v1/workspaces/{joined.json()['id']}")


def trusting(proxy: Proxy) -> dict[str, str]:
    """The environment of a client that comes by the proxy, as docs/deployment.md tells."""
    return {
        "LONGBOAT_URL": proxy.url,
        "LONGBOAT_TOKEN": SECRETS["server token"],
        "SSL_CERT_FILE": str(proxy.certificate),
        "NO_PROXY": NAME,
    }

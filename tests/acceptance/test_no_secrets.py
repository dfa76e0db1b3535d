"""No key, token, header or environment value is ever in a response, an event, a log or a command's output.

A scripted life with everything that goes wrong at a provider, all bytes of it kept, and searched at the end.
"""

import json
from pathlib import Path

import httpx2
import pytest
from processes import Site, ended, open_site
from sessions import SessionClient

from longboat.errors import ModelError
from longboat.testing import Break, Fail, Raw, Refuse, Say

pytestmark = pytest.mark.acceptance

SECRETS = {
    "key": "sk-KEYKEYKEY-0123456789abcdef/+=",
    "header": "hdr-HEADERHEADER-secret",
    "password": "pw-PASSWORDPASSWORD",
    "token": "tok-TOKENTOKENTOKEN-of-the-server",
    "environment": "env-ENVENVENV-unrelated-secret",
}
TELLING = 12
"""So many characters of a secret in a row are a leak, even if the rest was cut off or starred."""


def _leaks(said: bytes) -> list[str]:
    """The secrets of which a piece is in there, as it is or as JSON or URLs spell it."""
    text = said.decode(errors="replace").replace("\\/", "/").replace("%2F", "/").replace("%2B", "+").replace("%3D", "=")
    return [
        name
        for name, secret in SECRETS.items()
        if any(secret[at : at + TELLING] in text for at in range(len(secret) - TELLING + 1))
    ]


def _configure(site: Site) -> None:
    site.environ |= {
        "SCRIPTED_KEY": SECRETS["key"],
        "SCRIPTED_HEADER": SECRETS["header"],
        "LONGBOAT_TOKEN": SECRETS["token"],
        "UNRELATED": SECRETS["environment"],
    }


def _project(site: Site, **changes: object) -> Path:
    provider = {
        "type": "openai-compatible",
        "base_url": site.model.base_url,
        "api_key": "$SCRIPTED_KEY",
        "headers": {"X-Secret": "$SCRIPTED_HEADER"},
        "models": [{"id": "m"}],
    } | changes
    return site.project(providers={"mine": provider}, retry={"base_s": 0, "attempts": 2})


def _complaints() -> dict[str, list[object]]:
    """All ways in which a provider may quote the key and the header back."""
    quoted = f"you sent {SECRETS['key']} and {SECRETS['header']}"
    body = json.dumps({"error": {"message": quoted, "code": quoted}})
    refusals: dict[str, list[object]] = {f"status-{n}": [Refuse(n, body=body)] for n in (400, 401, 404, 429, 500)}
    return refusals | {
        "plain": [Refuse(401, body=quoted)],
        "code": [Refuse(400, message="no", code=SECRETS["key"])],
        "fine-status": [Refuse(200, body=body)],
        "escaped": [Refuse(401, body=body.replace("/", "\\/"))],
        "in-stream": [Say("x"), Fail(ModelError(quoted, code="server_error"))],
        "garbage": [Say("x"), Raw(f"data: {quoted}\n\n")],
        "dropped": [Say("x"), Break(drop=True)],
        "fine": [Say("fine")],
    }


class _Recorder:
    """Keeps everything that any answer held."""

    def __init__(self) -> None:
        self.said = bytearray()

    async def __call__(self, answer: httpx2.Response) -> None:
        for name, value in answer.headers.raw:
            self.said += name + b": " + value + b"\n"
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            self.said += await answer.aread()


def _recorded(session: SessionClient) -> _Recorder:
    recorder = _Recorder()
    session.http.event_hooks = {"response": [recorder]}
    return recorder


async def test_in_a_life_where_everything_goes_wrong_no_byte_of_a_secret_comes_out() -> None:
    async with open_site("tcp") as site:
        _configure(site)
        await site.serve()
        directory = _project(site)
        session = await site.session(directory)
        recorder = _recorded(session)
        async with session.watch() as watch:
            await _run_all(site, session)
            await _ask_all(session)
        assert any(SECRETS["key"] in value for value in site.model.requests[0].headers.values()), "it was never sent"
        assert SECRETS["header"] in site.model.requests[0].headers.values()
        commands = b""
        for command in (["doctor"], ["models"], ["status"], ["runs"], ["session", "list"], ["config", "show"]):
            done = await ended(await site.longboat(*command, cwd=directory))
            commands += (done.out + done.err).encode()
        site.server.terminate()
        assert await site.server.wait() == 0
        assert site.server.stdout is not None
        found = {
            "responses": _leaks(bytes(recorder.said)),
            "events": _leaks(bytes(watch.raw)),
            "commands": _leaks(commands),
            "log": _leaks(site.log.read_bytes() + await site.server.stdout.read()),
            "store": _leaks(b"".join(file.read_bytes() for file in site.data.glob("longboat.db*"))),
        }
        assert found == {place: [] for place in found}
        assert b"you sent" in watch.raw, "the provider's words are told, without the secret"


async def _run_all(site: Site, session: SessionClient) -> None:
    """One run for each complaint, and some where the key stands just where a long message is cut off."""
    complaints = _complaints()
    for at in range(460, 502, 3):
        complaints[f"cut-{at}"] = [Refuse(400, message="." * at + SECRETS["key"])]
        complaints[f"cut-stream-{at}"] = [Fail(ModelError("." * at + SECRETS["key"], code="bad_request"))]
    for name, step in complaints.items():
        site.model.add(step, name=name, repeat=True)  # type: ignore[arg-type]
        await session.submit(f"[[{name}]]", name)
    expected = {name: "end_turn" if name == "fine" else "error" for name in complaints}
    for name in complaints:
        await session.outcome(name)
    assert await session.check_books() == expected


async def _ask_all(session: SessionClient) -> None:
    """Every question that can be asked, and some that must be refused."""
    w, s = session.workspace, session.session_id
    for url in (
        *("/v1/health", "/v1/version", "/v1/metrics", "/v1/openapi.json", "/v1/docs", "/v1/workspaces"),
        *(w, f"{w}/agent", f"{w}/sessions", f"{w}/sessions/{s}", f"{w}/sessions/{s}/messages?limit=500"),
        *(f"{w}/runs?limit=500", f"{w}/agent/sessions/{s}", f"{w}/agent/sessions/{s}/prompts/queued"),
        *("/login?token=wrong", f"/login?token={SECRETS['token']}", f"{w}/events", "/nowhere", "/"),
    ):
        await session.http.get(url)
    await session.http.get("/v1/workspaces", headers={"authorization": "Bearer wrong"})
    await session.http.get("/v1/workspaces", headers={"host": "evil.example"})
    await session.http.post("/v1/workspaces", json={"path": "/no/such/place"})


async def test_a_password_in_the_base_url_that_the_provider_quotes_back_is_not_told() -> None:
    async with open_site("tcp") as site:
        _configure(site)
        await site.serve()
        site.model.add([Refuse(401, message=f"who is {SECRETS['password']}?")], name="who")
        base_url = site.model.base_url.replace("//", f"//user:{SECRETS['password']}@")
        session = await site.session(_project(site, base_url=base_url))
        recorder = _recorded(session)
        async with session.watch() as watch:
            await session.submit("[[who]]", "r1")
            assert "who is" in (await watch.complete("r1")).error
            await _ask_all(session)
        assert _leaks(bytes(recorder.said) + bytes(watch.raw) + site.log.read_bytes()) == []


@pytest.mark.parametrize("trouble", ["unreachable", "bad-key", "bad-config", "missing-variable"])
async def test_a_provider_that_cannot_even_be_asked_is_told_without_its_secrets(trouble: str) -> None:
    changes: dict[str, dict[str, object]] = {
        "unreachable": {"base_url": f"http://user:{SECRETS['password']}@127.0.0.1:1/v1?key={SECRETS['key']}"},
        "bad-key": {"api_key": SECRETS["key"] + "\n\u2603"},
        "bad-config": {"api_key": [SECRETS["key"]]},
        "missing-variable": {"api_key": "$NOT_SET_ANYWHERE" + SECRETS["key"]},
    }
    async with open_site("tcp") as site:
        _configure(site)
        await site.serve()
        session = await site.session(_project(site, **changes[trouble]))
        recorder = _recorded(session)
        async with session.watch() as watch:
            await session.submit("hello", "r1")
            assert (await watch.complete("r1")).error
            await _ask_all(session)
        said = bytes(recorder.said) + bytes(watch.raw) + site.log.read_bytes()
        assert _leaks(said) == []

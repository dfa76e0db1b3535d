"""Guessing the token is slowed, and its holder never is (D15: 300 wrong tokens took 0.26 s)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx2
import pytest
from server_harness import TOKEN, Served, checked_client, refusal, serve_in

from longboat.server.wrong_tokens import PER_ADDRESS


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve_in(tmp_path) as served:
        yield served


def by_header(client: httpx2.AsyncClient, token: str) -> Awaitable[httpx2.Response]:
    return client.get("/v1/version", headers={"authorization": f"Bearer {token}"})


def by_form(client: httpx2.AsyncClient, token: str) -> Awaitable[httpx2.Response]:
    return client.post("/login", data={"token": token})


def by_address(client: httpx2.AsyncClient, token: str) -> Awaitable[httpx2.Response]:
    return client.get("/login", params={"token": token})


def by_cookie(client: httpx2.AsyncClient, token: str) -> Awaitable[httpx2.Response]:
    return client.get("/v1/version", headers={"cookie": f"longboat_{client.base_url.port}={token}"})


@pytest.mark.shows_secrets("server token", reason="the form and the address bring it")
@pytest.mark.parametrize("guess", [by_header, by_form, by_address, by_cookie])
async def test_wrong_tokens_are_told_to_wait_and_the_right_one_never(
    served: Served, guess: Callable[[httpx2.AsyncClient, str], Awaitable[httpx2.Response]]
) -> None:
    async with checked_client(served) as stranger:
        answers = await asyncio.gather(*(guess(stranger, f"wrong-{n}") for n in range(300)))
        statuses = [answer.status_code for answer in answers]
        assert PER_ADDRESS.at_once <= statuses.count(401) < 30, "one more every few seconds"
        assert statuses.count(401) + statuses.count(429) == 300
        late = next(answer for answer in answers if answer.status_code == 429)
        assert int(late.headers["retry-after"]) >= 1
        if guess is not by_form:
            assert refusal(late) == (429, "too_many_attempts")
        # From the same address, at once:
        assert (await by_header(stranger, TOKEN)).status_code == 200
        assert (await by_form(stranger, TOKEN)).status_code == 303
        assert (await by_address(stranger, TOKEN)).status_code == 303
        assert (await served.tcp.get("/v1/version")).status_code == 200


async def test_a_browser_with_an_old_cookie_is_still_asked_for_the_token(served: Served) -> None:
    async with checked_client(served) as stranger:
        old = {"cookie": f"longboat_{stranger.base_url.port}=old"}
        for _ in range(PER_ADDRESS.at_once):
            assert (await stranger.get("/", headers=old)).status_code == 401
        late = await stranger.get("/", headers=old)
        assert (late.status_code, "retry-after" in late.headers) == (429, True)
        assert '<form method="post" action="/login">' in late.text


async def test_who_shows_no_token_has_not_guessed(served: Served) -> None:
    async with checked_client(served) as stranger:
        for _ in range(2 * PER_ADDRESS.at_once):
            assert refusal(await stranger.get("/v1/version")) == (401, "unauthorized")
        assert refusal(await by_header(stranger, "wrong")) == (401, "unauthorized")

"""Logs in to servers that require it: the SDK implements OAuth, this module stores its state.

After a restart the SDK no longer knows when a token expires and where to renew it, and would ask a person again instead
of renewing it; so both are stored with the token. Several workspaces share the file of one server.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from longboat.tools.mcp.logins import Logins, load, save

PERSON_S = 600.0
"""How long a person may take to log in."""

Model = TypeVar("Model", bound=BaseModel)
OnUrl = Callable[[str | None], None]
"""Told the page to open, and None when it is no longer needed."""


class Login(OAuthClientProvider):
    """The login to the server at `url`, for an HTTP client that uses it when the server requires one."""

    def __init__(self, url: str, logins: Logins, on_url: OnUrl) -> None:
        self._logins = logins
        self._on_url = on_url
        self._page = ""
        self._code = ""
        self._renewing = logins.renewing(logins.file_for(url))
        self._vault = _Vault(logins.file_for(url), logins.address())
        metadata = OAuthClientMetadata(
            client_name="Longboat",
            redirect_uris=[AnyUrl(logins.address())],
            # We are a program on someone's machine: no secret of ours would be one.
            token_endpoint_auth_method="none",
        )
        super().__init__(url, metadata, self._vault, self._send_away, self._wait_back)
        self._vault.restore(self)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow, with one workspace at a time until it is about to send the request itself: what comes before
        that renews the token."""
        async with aclosing(super().async_auth_flow(request)) as flow, AsyncExitStack() as renewal:
            self._vault.catch_up(self)
            if not self.context.is_token_valid():
                await renewal.enter_async_context(self._renewing)
                self._vault.catch_up(self)
            outgoing = await anext(flow)
            while True:
                if outgoing is request:
                    await renewal.aclose()
                response = yield outgoing
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return
                except OAuthTokenError as error:
                    raise OAuthTokenError(discreet(str(error), self._code)) from None

    async def _send_away(self, url: str) -> None:
        self._page = url

    async def _wait_back(self) -> AuthorizationCodeResult:
        state = parse_qs(urlsplit(self._page).query)["state"][0]
        try:
            async with asyncio.timeout(PERSON_S), self._logins.expecting(state) as came:
                self._on_url(self._page)
                query = await came
        except TimeoutError:
            raise OAuthFlowError("no one logged in within ten minutes") from None
        finally:
            self._on_url(None)
        if "code" not in query:
            raise OAuthFlowError(f"the login was refused: {query.get('error_description') or query.get('error')}")
        self._code = query["code"]
        return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))


def discreet(complaint: str, code: str) -> str:
    """What the SDK says of a token that it did not get, without the code, which servers quote, and without the tokens
    of an answer that it could not read."""
    told, _, _ = complaint.partition("Invalid token response:")
    told = complaint if told == complaint else f"{told}Invalid token response"
    return told.replace(code, "***") if code else told


class _Vault:
    """The SDK's token storage over a private file."""

    def __init__(self, file: Path, address: str) -> None:
        self._file = file
        self._provider: OAuthClientProvider | None = None
        self._kept = load(file)
        self._seen = _version(file)
        client = self._client()
        if client is not None and address not in map(str, client.redirect_uris or ()):
            # The browser would be sent to a port that is no longer ours: register and log in again.
            self._kept = {}

    def restore(self, provider: OAuthClientProvider) -> None:
        self._provider = provider
        context = provider.context
        expires_at = self._kept.get("expires_at")
        context.token_expiry_time = expires_at if isinstance(expires_at, int | float) else None
        context.oauth_metadata = _read(OAuthMetadata, self._kept.get("server"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, self._kept.get("resource"))

    def catch_up(self, provider: OAuthClientProvider) -> None:
        """Take over what another workspace was granted meanwhile: a renewed token makes the old one useless."""
        if self._seen == (version := _version(self._file)):
            return
        self._seen = version
        self._kept = load(self._file)
        self.restore(provider)
        provider.context.current_tokens = self._tokens()
        provider.context.client_info = self._client()

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens()

    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self._provider is not None, "restored before it is used"
        context = self._provider.context
        self._kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._kept["expires_at"] = None if tokens.expires_in is None else time.time() + tokens.expires_in
        for key, metadata in (("server", context.oauth_metadata), ("resource", context.protected_resource_metadata)):
            if metadata is not None:
                self._kept[key] = metadata.model_dump(mode="json", exclude_none=True)
        await self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._kept["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._save()

    def _tokens(self) -> OAuthToken | None:
        return _read(OAuthToken, self._kept.get("tokens"))

    def _client(self) -> OAuthClientInformationFull | None:
        return _read(OAuthClientInformationFull, self._kept.get("client"))

    async def _save(self) -> None:
        await asyncio.to_thread(save, self._file, self._kept)
        self._seen = _version(self._file)


def _read(model: type[Model], value: Any) -> Model | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def _version(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0

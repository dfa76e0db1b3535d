"""The set-up of models: providers, a check of a key, what to store."""

from litestar import delete, get, post, put
from litestar.params import FromPath

from longboat.server.routes.request import HttpRequest, app_of, read_body, takes
from longboat.wire.providers import Provider, ProviderCheck, ProviderPage
from longboat.wire.requests import CheckProvider, ConnectProvider

ONE = "/v1/providers/{provider:str}"


@get("/v1/providers")
async def list_providers(request: HttpRequest) -> ProviderPage:
    """The providers of models: whether each is connected and from where, and what it needs. Keys are never shown."""
    return await (await app_of(request).providers()).list()


@post(ONE + "/check", status_code=200, opt=takes(CheckProvider, optional=True))
async def check_provider(request: HttpRequest, provider: FromPath[str]) -> ProviderCheck:
    """Try a key or an address with one cheap request to the provider: whether it works, and the models with price and
    context window. Stores nothing. A name that is not in the list is an OpenAI-compatible server of your own."""
    wanted = await read_body(request, CheckProvider)
    return await (await app_of(request).providers()).check(provider, wanted)


@put(ONE, opt=takes(ConnectProvider))
async def connect_provider(request: HttpRequest, provider: FromPath[str]) -> Provider:
    """Store a key, an address, and the default model, for all workspaces and without a restart. The key goes into the
    credentials file of the user who runs the server (or the system's keyring), the rest into their own longboat.json.
    The key is not tried: `check` does that."""
    wanted = await read_body(request, ConnectProvider)
    return await app_of(request).connect_provider(provider, wanted)


@delete(ONE, status_code=200)
async def forget_provider(request: HttpRequest, provider: FromPath[str]) -> Provider:
    """Forget the stored key. Does nothing if there is none; longboat.json and the environment stay as they are."""
    return await app_of(request).forget_provider(provider)


HANDLERS = [list_providers, check_provider, connect_provider, forget_provider]

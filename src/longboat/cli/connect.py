"""`longboat connect`: connect a provider of models and choose the default one."""

import sys
from typing import TYPE_CHECKING

import click

from longboat.cli.console import one_line, safe, table
from longboat.cli.main import Failure
from longboat.cli.options import format_option
from longboat.wire.listings import ModelInfo
from longboat.wire.providers import Provider, ProviderCheck, ProviderPage

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

SHOWN = 20
"""Models that a person is offered by number; any other is chosen by name."""
TRIES = 3
"""How often a person may enter a key."""
MAX_KEY = 64 * 1024

SOURCES = {
    "environment": "key from the environment",
    "stored": "stored key",
    "configuration": "set in longboat.json",
    "running": "running on this machine",
    "local": "installed",
    None: "",
}


@click.command(short_help="Connect a provider and choose the default model.")
@click.argument("provider", required=False)
@click.option("--key", metavar="-", help="Read the API key from standard input.")
@click.option("--base-url", metavar="URL", help="The address of your own server, such as http://localhost:8000/v1.")
@click.option("-m", "--model", metavar="MODEL", help="The default model, by its name at the provider.")
@click.option("--list", "listing", is_flag=True, help="List the providers and whether they are connected.")
@click.option("--forget", metavar="PROVIDER", help="Delete a provider's stored key.")
@format_option
def connect(
    *,
    provider: str | None,
    key: str | None,
    base_url: str | None,
    model: str | None,
    listing: bool,
    forget: str | None,
    style: str,
) -> None:
    """Connect a model provider: enter an API key, test it, and choose the default model.

    The running server uses it at once. The key is stored for all directories, in ~/.config/longboat/credentials.json
    (readable only by you) or in the system's keyring. PROVIDER is a name from --list; any other name is an
    OpenAI-compatible server of your own, with --base-url.

    \b
    longboat connect                                            choose from a list
    longboat connect anthropic
    longboat connect openai --key - --model gpt-6.1-sol < key.txt
    longboat connect work --base-url http://localhost:8000/v1 --model qwen3-coder
    longboat connect --list
    longboat connect --forget anthropic
    """
    if sum((provider is not None, listing, forget is not None)) > 1:
        raise click.UsageError("Use only one of PROVIDER, --list and --forget.")
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(".")
    page = connection.send(calls.providers())
    if forget is not None:
        _forget(connection, page, forget)
        return
    if listing:
        _print(page, style)
        return
    chosen = _provider_named(page, provider) if provider is not None else _pick_provider(page)
    if chosen.url == "required" and base_url is None and chosen.base_url is None:
        base_url = _ask_url()
    _Setup(connection, chosen, base_url).run(
        _key_from_stdin(key, needed=chosen.key == "required" and base_url is None), model
    )


class _Setup:
    """One provider on its way to being connected."""

    def __init__(self, connection: "Connection", provider: Provider, base_url: str | None) -> None:
        self._connection = connection
        self._provider = provider
        self._base_url = None if base_url is None else base_url.strip()

    def run(self, key: str | None, model: str | None) -> None:
        from longboat.client import calls

        if key is None and self._wants_key():
            key = self._ask_key()
        key, found = self._checked(key)
        chosen = _model_named(found, self._provider.id, model) if model is not None else _pick_model(found)
        name = chosen.name.partition("/")[2]
        self._connection.send(
            calls.connect_provider(
                self._provider.id,
                api_key=key,
                base_url=found.base_url if self._base_url is not None else None,
                model=name,
                context_window=chosen.context_window,
            )
        )
        connected = self._name if self._address is None else found.base_url or self._address
        click.echo(f"Connected to {safe(connected)}. Default model: {safe(chosen.name)}{_facts(chosen)}.")

    @property
    def _address(self) -> str | None:
        """Of a person's own server, which has no better name."""
        return self._base_url or (self._provider.base_url if self._provider.url == "required" else None)

    @property
    def _name(self) -> str:
        return self._address or self._provider.name

    def _wants_key(self) -> bool:
        """A connected provider already has one, which does not go to a new address."""
        if self._is_moved:
            return self._provider.key != "none" and _is_interactive()
        return self._provider.key == "required" and not self._provider.connected

    @property
    def _is_moved(self) -> bool:
        return self._base_url is not None and self._base_url != self._provider.base_url

    def _ask_key(self) -> str | None:
        if not _is_interactive():
            raise Failure(
                f"{self._provider.name} needs an API key.",
                f"Pass it on standard input: longboat connect {self._provider.id} --key -",
            )
        if self._provider.key_page:
            click.echo(f"Create an API key at {self._provider.key_page}", err=True)
        optional = self._provider.key == "optional" or self._is_moved
        whose = "" if self._address is not None else f" for {self._provider.name}"
        label = f"API key{whose}{' (Enter if none)' if optional else ''}"
        given = click.prompt(label, hide_input=True, err=True, default="" if optional else None, show_default=False)
        return str(given).strip() or None

    def _checked(self, key: str | None) -> tuple[str | None, ProviderCheck]:
        """The key that works, and what the provider offers. A person may try again."""
        from longboat.client import calls

        for left in range(TRIES - 1, -1, -1):
            click.echo(f"Testing {safe(self._name)}…", err=True)
            found = self._connection.send(calls.check_provider(self._provider.id, api_key=key, base_url=self._base_url))
            if found.ok:
                return key, found
            if not left or key is None or not _is_interactive():
                break
            click.secho(safe(found.problem or ""), fg="red", err=True)
            key = self._ask_key()
        raise Failure(safe(found.problem or "The test failed."), "Nothing was stored. Correct this and try again.")


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _key_from_stdin(given: str | None, *, needed: bool) -> str | None:
    if given is None:
        return None
    if given != "-":  # it would be in the shell's history, and other users see the commands that run
        raise click.UsageError("Pass the key on standard input, not on the command line: --key - < FILE")
    key = sys.stdin.read(MAX_KEY).strip()
    if not key:
        advice = "For example: longboat connect anthropic --key - < key.txt"
        unneeded = "" if needed else "Leave out --key if the server needs none.\n  "
        raise Failure("Standard input has no key.", unneeded + advice)
    return key


def _pick_provider(page: ProviderPage) -> Provider:
    _require_person("Which provider?", "Name it: longboat connect PROVIDER (`longboat connect --list` lists them).")
    for number, each in enumerate(page.items, 1):
        click.echo(f"{number:3}  {safe(each.name)}{f'  ({SOURCES[each.source]})' if each.connected else ''}", err=True)
    at = click.prompt("Provider", type=click.IntRange(1, len(page.items)), err=True)
    return page.items[at - 1]


def _pick_model(found: ProviderCheck) -> ModelInfo:
    """The person's choice. Without a terminal, the one that we recommend."""
    if not found.models:
        raise Failure("The server has no list of models.", "Name the model with --model MODEL. Nothing was stored.")
    if not _is_interactive() or len(found.models) == 1:
        return found.models[0]
    for number, each in enumerate(found.models[:SHOWN], 1):
        click.echo(f"{number:3}  {safe(each.name)}{_facts(each)}", err=True)
    if len(found.models) > SHOWN:
        click.echo(f"     … and {len(found.models) - SHOWN} more: enter the name.", err=True)
    names = {each.name.partition("/")[2]: each for each in found.models}
    while True:
        given = str(click.prompt("Default model", default="1", err=True)).strip()
        if given.isdigit() and 1 <= int(given) <= len(found.models):
            return found.models[int(given) - 1]
        if given in names:
            return names[given]
        click.echo("Enter a number or a name from the list.", err=True)


def _model_named(found: ProviderCheck, provider: str, name: str) -> ModelInfo:
    """The model of that name; one that the provider does not list is taken as it is given."""
    plain = name.removeprefix(f"{provider}/")
    listed = next((each for each in found.models if each.name == f"{provider}/{plain}"), None)
    if not found.models:
        click.echo(f"The server has no list of models; using {safe(plain)}.", err=True)
    elif listed is None:
        click.echo(f"{safe(provider)} does not list {safe(plain)}; using it anyway.", err=True)
    return listed or ModelInfo(name=f"{provider}/{plain}", ready=True)


def _provider_named(page: ProviderPage, name: str) -> Provider:
    known = next((each for each in page.items if each.id == name), None)
    return known or Provider(id=name, name=name, connected=False, key="optional", url="required")


def _ask_url() -> str:
    _require_person("Which address?", "Pass --base-url URL, such as http://localhost:8000/v1.")
    return str(click.prompt("Base URL (such as http://localhost:8000/v1)", err=True)).strip()


def _require_person(question: str, hint: str) -> None:
    if not _is_interactive():
        raise Failure(question, hint)


def _forget(connection: "Connection", page: ProviderPage, name: str) -> None:
    from longboat.client import calls

    without = next((each for each in page.items if each.id == name and not each.stored), None)
    if without is not None:
        source = f" It uses the {SOURCES[without.source]}." if without.source == "environment" else ""
        click.echo(f"No key is stored for {safe(without.name)}.{source}")
        return
    left = connection.send(calls.forget_provider(name))
    still = f" It is still connected ({SOURCES[left.source]})." if left.connected else ""
    click.echo(f"Deleted the stored key for {safe(left.name)}.{still}")


def _facts(model: ModelInfo) -> str:
    """Price and window, in parentheses; empty if both are unknown."""
    price = f"${model.price.input:g} in, ${model.price.output:g} out per million tokens" if model.price else ""
    window = f"{model.context_window:,} tokens of context" if model.context_window else ""
    told = ", ".join(filter(None, (price, window)))
    return f" ({told})" if told else ""


def _print(page: ProviderPage, style: str) -> None:
    if style == "json":
        from longboat.cli.console import json_page

        json_page(page)
        return
    rows = [
        (each.id, "connected" if each.connected else "-", SOURCES[each.source] or one_line(each.problem or each.name))
        for each in page.items
    ]
    table(("PROVIDER", "STATE", "DETAIL"), rows)
    click.echo()
    click.echo(f"Default model: {safe(page.model)}" if page.model else "No default model: run `longboat connect`.")

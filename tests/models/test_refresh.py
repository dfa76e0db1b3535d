"""`longboat models refresh`: what is fetched, what stays when it cannot be, and who gets which key (A6)."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from genai_prices.data_snapshot import get_snapshot, set_custom_snapshot

from longboat.cli.models import models
from longboat.config.settings import Config
from longboat.models import refreshed_catalogue
from longboat.models.refresh import refresh
from longboat.models.refreshed_catalogue import Listed
from longboat.models.registry import Registry

PRICES = [
    {
        "id": "groq",
        "name": "Groq",
        "api_pattern": r"https://api\.groq\.com",
        "models": [
            {
                "id": "brand-new",
                "match": {"equals": "brand-new"},
                "context_window": 777_000,
                "prices": {"input_mtok": 1, "output_mtok": 2},
            }
        ],
    }
]
LISTED = {
    "data": [
        {"id": "vllm", "max_model_len": 4096},
        {
            "id": "router",
            "context_length": 9000,
            "top_provider": {"max_completion_tokens": 500},
            "architecture": {"input_modalities": ["text", "image"]},
        },
        {"id": "bare"},
        "nonsense",
    ]
}


class Site:
    def __init__(self, url: str) -> None:
        self.url = url
        self.pages: dict[str, Any] = {}
        self.keys: dict[str, str | None] = {}


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.keys[self.path] = self.headers.get("authorization")
            known = self.path in found.pages
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(found.pages.get(self.path)).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@contextmanager
def own_prices() -> Iterator[None]:
    try:
        yield
    finally:
        set_custom_snapshot(None)


def registry(data_dir: Path, base_url: str) -> Registry:
    section = {"type": "openai-compatible", "base_url": base_url, "api_key": "sesame"}
    config = msgspec.convert({"providers": {"mine": section}}, Config)
    return Registry(config, {"GROQ_API_KEY": "k"}, data_dir=data_dir, look=lambda: None)


def run(tmp_path: Path, site: Site, *, prices: str = "/prices") -> list[tuple[bool, str]]:
    providers = {"mine": registry(tmp_path, f"{site.url}/v1").accesses()["mine"]}
    return [(each.ok, each.text) for each in refresh(tmp_path, providers, prices_url=site.url + prices)]


def test_what_was_fetched_is_what_is_known_from_then_on(tmp_path: Path, site: Site):
    site.pages = {"/prices": PRICES, "/v1/models": LISTED}
    with own_prices():
        assert run(tmp_path, site) == [
            (True, "The price list is up to date."),
            (True, "mine lists 3 models; 2 with a context window."),
        ]
        assert refreshed_catalogue.listing(tmp_path)["mine"] == {
            "vllm": Listed(context_window=4096),
            "router": Listed(context_window=9000, max_output_tokens=500, images=True),
            "bare": Listed(),
        }
        assert site.keys == {"/prices": None, "/v1/models": "Bearer sesame"}
        set_custom_snapshot(None)
        known = registry(tmp_path, f"{site.url}/v1")
        assert known.resolve("mine/vllm", "large").context_window == 4096
        assert known.resolve("groq/brand-new", "large").context_window == 777_000
        assert known.describe().hint is None


def test_without_a_network_everything_stays_and_it_is_said(tmp_path: Path, site: Site):
    refreshed_catalogue.save_listing(tmp_path, {"mine": {"m": Listed(context_window=5)}})
    (prices, mine) = run(tmp_path, site)
    assert prices[0] is mine[0] is False
    assert "The price list could not be fetched: " in prices[1]
    assert "The current one is kept." in prices[1]
    assert "404" in mine[1]
    assert "sesame" not in mine[1]
    assert refreshed_catalogue.listing(tmp_path) == {"mine": {"m": Listed(context_window=5)}}
    assert not get_snapshot().from_auto_update


@pytest.mark.parametrize("page", [[], {}, "text", [{"id": 1}], 5])
def test_what_is_no_price_list_is_not_taken(tmp_path: Path, site: Site, page: Any):
    site.pages = {"/prices": page}
    assert run(tmp_path, site)[0][0] is False
    assert not (tmp_path / "models" / "prices.json").exists()


@pytest.mark.parametrize("name", ["prices.json", "listed.json"])
def test_a_broken_file_is_as_good_as_none(tmp_path: Path, name: str):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / name).write_text("[{")
    assert registry(tmp_path, "http://127.0.0.1:1/v1").resolve("mine/m", "large").context_window == 128_000


def test_the_command_tells_what_came_of_it(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LONGBOAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for key in ("OPENROUTER_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    arguments = ["refresh", "--cwd", str(tmp_path), "--prices-url", f"{site.url}/prices"]
    failed = CliRunner().invoke(models, arguments)
    assert (failed.exit_code, "Nothing was downloaded;" in failed.output) == (1, True)
    site.pages = {"/prices": PRICES}
    with own_prices():
        done = CliRunner().invoke(models, arguments)
    assert (done.exit_code, done.output) == (0, "The price list is up to date.\n")
    assert (tmp_path / "data" / "models" / "prices.json").exists()

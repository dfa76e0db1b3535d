"""Which model is chosen, and what is said when none can be."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gguf_files import write_gguf

from longboat.config.settings import Config
from longboat.errors import ModelError
from longboat.installation import install_command
from longboat.models import registry
from longboat.models.adapters import RetirableModel
from longboat.models.local.known import DEMO, QWEN_CODER
from longboat.models.local.model import LocalModel, LocalModels
from longboat.models.openai_chat import OpenAIChatModel
from longboat.models.protocol import Abilities, Finished, Model, ModelRequest
from longboat.models.providers import LISTINGS
from longboat.models.pydantic_adapter import PydanticModel
from longboat.models.registry import KNOWN, Registry
from longboat.models.tool_modes.model import ToolModel
from longboat.testing.endpoint import ScriptedEndpoint

MINE = {"type": "openai-compatible", "base_url": "http://127.0.0.1:8911/v1", "api_key": "x", "models": [{"id": "m"}]}


@pytest.fixture(autouse=True)
def no_local_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)


@pytest.fixture
def local_runtime(no_local_runtime: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "xllamacpp")
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('only looked for, never imported')")
    monkeypatch.syspath_prepend(str(tmp_path))


def registry_of(config: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> Registry:
    return Registry(msgspec.convert(config or {}, Config), environ or {}, data_dir=Path("/nowhere"), look=lambda: None)


def spelled(model: Model) -> str:
    return f"{model.provider}/{model.name}"


def adapter_of(models: Registry, name: str | None = None) -> Model:
    """The adapter that speaks to the provider."""
    lent = models.resolve(name, "large")
    assert isinstance(lent, RetirableModel)
    return lent.adapter.adapter if isinstance(lent.adapter, ToolModel) else lent.adapter


# Which one


@pytest.mark.parametrize("provider", KNOWN)
@pytest.mark.parametrize("position", [0, -1])
def test_a_usual_key_is_enough(provider: str, position: int):
    models = registry_of(environ={KNOWN[provider].keys[position]: "k"})
    assert spelled(models.resolve(None, "large")) == f"{provider}/{KNOWN[provider].large.id}"
    assert spelled(models.resolve(None, "small")) == f"{provider}/{KNOWN[provider].small.id}"


def test_the_first_known_provider_with_a_key_is_taken():
    environ = {"GROQ_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": ""}
    assert registry_of(environ=environ).resolve(None, "large").provider == "openai"


def test_an_explicit_name_wins_over_the_configuration_and_it_over_a_key():
    models = registry_of({"providers": {"mine": MINE}, "models": {"large": "mine/m"}}, {"ANTHROPIC_API_KEY": "k"})
    assert spelled(models.resolve(None, "large")) == "mine/m"
    assert spelled(models.resolve("anthropic/claude-opus-5-5", "large")) == "anthropic/claude-opus-5-5"
    assert spelled(models.resolve("mine/other/with/slashes", "small")) == "mine/other/with/slashes"


def test_a_configured_provider_wins_over_a_key_even_if_no_model_is_named():
    models = registry_of({"providers": {"mine": MINE}}, {"ANTHROPIC_API_KEY": "k"})
    assert spelled(models.resolve(None, "large")) == "mine/m"
    assert models.resolve(None, "small") is models.resolve(None, "large")


def test_a_provider_alone_means_its_default():
    models = registry_of(environ={"OPENROUTER_API_KEY": "k"})
    assert models.resolve("openrouter", "small").name == KNOWN["openrouter"].small.id


@pytest.mark.parametrize(
    ("large", "small"), [("mine/m", "mine/m"), ("anthropic/claude-opus-5-5", "anthropic/claude-haiku-5-5")]
)
def test_the_small_model_is_of_the_large_ones_provider(large: str, small: str):
    environ = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    models = registry_of({"providers": {"mine": MINE}, "models": {"large": large}}, environ)
    assert spelled(models.resolve(None, "small")) == small


@pytest.mark.usefixtures("local_runtime")
def test_the_local_model_is_the_last_resort():
    models = registry_of()
    assert type(models.resolve(None, "large")) is LocalModel
    assert models.resolve(None, "small") is models.resolve("local", "large") is models.resolve(None, "large")
    assert registry_of(environ={"GROQ_API_KEY": "k"}).resolve(None, "large").provider == "groq"


@pytest.mark.usefixtures("local_runtime")
def test_a6_where_nothing_is_configured_it_is_said_that_the_local_model_is_no_coder_and_what_to_do():
    advice = registry_of().describe().advice or ""
    assert advice.startswith("No provider is configured. Using the small local model. It can chat but cannot code.")
    assert advice.endswith("For a better one, run `longboat connect` (in the apps: /connect).")
    unready = {"providers": {"mine": MINE | {"base_url": None}}}
    assert (registry_of(unready).describe().advice or "").startswith("No provider in longboat.json is ready.")


@pytest.mark.usefixtures("local_runtime")
@pytest.mark.parametrize(
    ("config", "environ"),
    [
        ({"models": {"large": "local/smollm2-135m"}}, {}),
        ({"providers": {"local": {"type": "local"}}}, {}),
        ({"providers": {"mine": MINE}}, {}),
        ({}, {"GROQ_API_KEY": "k"}),
    ],
)
def test_a6_who_chose_a_model_is_not_told_to_choose_one(config: dict[str, Any], environ: dict[str, str]):
    assert registry_of(config, environ).describe().advice is None


@pytest.mark.usefixtures("local_runtime")
def test_two_configurations_share_a_local_model(tmp_path: Path):
    shared = LocalModels(tmp_path)
    one, other = (Registry(Config(), {}, data_dir=tmp_path, local_models=shared) for _ in range(2))
    assert one.resolve(None, "large") is other.resolve("local/smollm2-135m", "small")


# Local models


def local_registry(data_dir: Path, *entries: dict[str, Any], **models: str) -> Registry:
    section = {"type": "local", "models": entries} if entries else None
    config = {"providers": {"local": section} if section else {}, "models": {"detect": False, **models}}
    return Registry(msgspec.convert(config, Config), {}, data_dir=data_dir)


@pytest.mark.usefixtures("local_runtime")
def test_a_local_model_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_gguf(tmp_path / "home" / "m.gguf")
    monkeypatch.setenv("HOME", str(path.parent))
    models = local_registry(tmp_path)
    for name in (f"local/{path}", "local/~/m.gguf"):
        model = models.resolve(name, "large")
        assert (spelled(model), model.context_window) == (name, 12_288)
    assert models.resolve(f"local/{path}", "large") is models.resolve(f"local/{path}", "small")


@pytest.mark.usefixtures("local_runtime")
def test_the_configuration_gives_a_file_a_name_and_settings(tmp_path: Path):
    path = write_gguf(tmp_path / "m.gguf")
    entry = {"id": "mine", "path": str(path), "context_window": 5_000, "max_output_tokens": 700, "threads": 3}
    model = local_registry(tmp_path, entry).resolve(None, "large")
    assert isinstance(model, ToolModel)
    assert isinstance(model.adapter, LocalModel)
    assert spelled(model) == "local/mine"
    fit = model.adapter.fit
    assert (fit.context_window, fit.max_output_tokens, fit.threads) == (5_000, 700, 3)


@pytest.mark.usefixtures("local_runtime")
def test_a_downloaded_file_is_known_by_its_name(tmp_path: Path):
    write_gguf(tmp_path / "models" / "devstral-q4.gguf")
    models = local_registry(tmp_path)
    assert spelled(models.resolve("local/devstral-q4", "large")) == "local/devstral-q4"
    assert "local/devstral-q4" in {model.name for model in models.models() if model.ready}


@pytest.mark.usefixtures("local_runtime")
def test_titles_come_from_the_same_local_model(tmp_path: Path):
    write_gguf(tmp_path / "models" / "m.gguf")
    models = local_registry(tmp_path, large="local/m")
    assert models.resolve(None, "small") is models.resolve(None, "large")


@pytest.mark.usefixtures("local_runtime")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("local/qwen2.5-coder-1.5b", r"Run `longboat models pull qwen2.5-coder-1.5b` \(1\.1 GB\)"),
        ("local/no-such", "There is no local model 'no-such'.*local//path/to/file.gguf"),
        ("local/../../etc/passwd", "There is no local model"),
        ("local//no/such.gguf", "/no/such.gguf cannot be read: No such file"),
        ("local/relative", "must be absolute"),
    ],
)
def test_what_is_wrong_with_a_local_model_is_told(tmp_path: Path, name: str, message: str):
    entries = [{"id": "relative", "path": "models/m.gguf"}]
    with pytest.raises(ModelError, match=message):
        local_registry(tmp_path, *entries).resolve(name, "large")


@pytest.mark.usefixtures("local_runtime")
def test_only_local_itself_takes_paths(tmp_path: Path):
    """Whatever else a path could hide behind, the rules for trust would have to know."""
    path = write_gguf(tmp_path / "m.gguf")
    config = msgspec.convert({"providers": {"mine": {"type": "local"}}}, Config)
    with pytest.raises(ModelError, match="There is no local model"):
        Registry(config, {}, data_dir=tmp_path).resolve(f"mine/{path}", "large")


@pytest.mark.usefixtures("local_runtime")
def test_the_list_tells_of_local_models_what_is_known_and_no_more(tmp_path: Path):
    path = write_gguf(tmp_path / "models" / "m.gguf", weights=1_000_000)
    broken = {"id": "broken", "path": str(tmp_path / "none.gguf")}
    found = {model.name: model for model in local_registry(tmp_path, broken).models() if model.name.startswith("local")}
    assert list(found) == ["local/smollm2-135m", "local/m", "local/broken", "local/qwen2.5-coder-1.5b"]
    mine, demo, coder = (found[f"local/{name}"] for name in ("m", DEMO.id, QWEN_CODER.id))
    assert mine.local is not None
    assert (mine.ready, mine.context_window, mine.local.downloaded) == (True, 12_288, True)
    assert (mine.local.size, mine.local.solved, mine.local.tokens_per_s) == (path.stat().st_size, None, None)
    assert mine.local.memory > mine.local.size
    assert (demo.ready, demo.context_window, demo.local and demo.local.downloaded) == (True, 8_192, False)
    assert (coder.ready, coder.local and coder.local.size) == (False, QWEN_CODER.file.size)
    assert "longboat models pull qwen2.5-coder-1.5b" in (coder.problem or "")
    assert (found["local/broken"].ready, found["local/broken"].local) == (False, None)
    assert "No such file" in (found["local/broken"].problem or "")


def test_the_same_name_is_the_same_model():
    models = registry_of(environ={"ANTHROPIC_API_KEY": "k"})
    assert models.resolve("anthropic/claude-sonnet-5-5", "small") is models.resolve(None, "large")


def test_every_known_provider_has_a_name_and_a_page_for_keys():
    """`longboat connect` and both apps show them."""
    assert [name for name in KNOWN if name not in LISTINGS or not LISTINGS[name].key_page] == []


# How it is spoken to


@pytest.mark.parametrize(
    ("config", "environ", "adapter"),
    [
        ({}, {"OPENROUTER_API_KEY": "k"}, OpenAIChatModel),
        ({}, {"GROQ_API_KEY": "k"}, OpenAIChatModel),
        ({}, {"OPENAI_API_KEY": "k"}, PydanticModel),
        ({}, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, OpenAIChatModel),
        ({}, {"ANTHROPIC_API_KEY": "k"}, PydanticModel),
        ({}, {"GEMINI_API_KEY": "k"}, PydanticModel),
        ({}, {"MISTRAL_API_KEY": "k"}, PydanticModel),
        ({"providers": {"mine": MINE}}, {}, OpenAIChatModel),
        ({"providers": {"mine": MINE | {"type": "anthropic-compatible"}}}, {}, PydanticModel),
        ({"providers": {"mine": MINE | {"type": "openai"}}}, {}, OpenAIChatModel),
    ],
)
def test_each_provider_gets_its_adapter(config: dict[str, Any], environ: dict[str, str], adapter: type[Model]):
    assert type(adapter_of(registry_of(config, environ))) is adapter


def test_the_context_window_is_configured_known_or_assumed():
    models = registry_of(
        {"providers": {"mine": MINE | {"models": [{"id": "m", "context_window": 5000}]}}}, {"ANTHROPIC_API_KEY": "k"}
    )
    assert models.resolve("mine/m", "large").context_window == 5000
    assert models.resolve("mine/unheard-of", "large").context_window == 128_000
    assert models.resolve("anthropic/claude-haiku-4-5", "large").context_window == 200_000


def test_the_table_agrees_with_the_library_and_the_price_list():
    """The defaults are models that exist in the versions we depend on."""
    from genai_prices.data_snapshot import get_snapshot
    from pydantic_ai.models import KnownModelName

    names = set(KnownModelName.__value__.__args__)
    for provider, known in KNOWN.items():
        for entry in (known.large, known.small):
            _, listed = get_snapshot().find_provider_model(entry.id, None, provider, None)
            assert listed.context_window in (entry.context_window, None)
            assert provider == "openrouter" or f"{provider}:{entry.id}" in names


AZURE = {"AZURE_OPENAI_API_KEY": "sesame", "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}
BEDROCK = {"AWS_BEARER_TOKEN_BEDROCK": "sesame", "AWS_REGION": "eu-west-1"}


@pytest.mark.parametrize(
    ("environ", "name", "adapter", "url"),
    [
        (AZURE, "azure/my-gpt", PydanticModel, "https://mine.openai.azure.com/openai/v1"),
        (BEDROCK, "bedrock/openai.gpt-oss-120b", OpenAIChatModel, "https://bedrock-mantle.eu-west-1.api.aws/v1"),
        (
            BEDROCK,
            "bedrock/us.anthropic.claude-sonnet-5-5",
            PydanticModel,
            "https://bedrock-mantle.eu-west-1.api.aws/anthropic",
        ),
    ],
)
def test_a_cloud_is_reached_with_its_usual_variables(
    environ: dict[str, str], name: str, adapter: type[Model], url: str
):
    """A6"""
    built = adapter_of(registry_of(environ=environ), name)
    assert type(built) is adapter
    assert (built._endpoint.base_url if isinstance(built, PydanticModel) else built._to.url) == url


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a6_the_usual_variable_moves_a_provider_and_its_key_with_it(name: str):
    url = "http://127.0.0.1:1/gateway"
    models = registry_of(environ={f"{name.upper()}_API_KEY": "sesame", f"{name.upper()}_BASE_URL": url})
    (info,) = [each for each in models.describe().providers if each.name == name]
    assert (info.base_url, info.key, info.problem) == (url, "set", None)
    access = models.accesses()[name][1]
    assert (access.base_url, access.key) == (url, "sesame")
    assert spelled(models.resolve(None, "large")) == f"{name}/{KNOWN[name].large.id}"


def test_a6_an_address_of_anthropic_without_a_key_makes_nothing_ready():
    """Other programs set it beside a token of their own, which is not ours to use."""
    models = registry_of(environ={"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "GROQ_API_KEY": "k"})
    assert models.resolve(None, "large").provider == "groq"
    assert "Run `longboat connect anthropic`, or set ANTHROPIC_API_KEY." in refused(
        models, "anthropic/claude-sonnet-5-5"
    )


async def test_azure_is_asked_on_its_own_path_and_with_its_own_header():
    """A6"""
    async with ScriptedEndpoint() as endpoint:
        section = {"type": "azure", "base_url": f"{endpoint.url}/openai/v1", "api_key": "sesame"}
        models = registry_of({"providers": {"work": section}})
        lent = models.resolve("work/my-gpt", "large")
        assert isinstance(lent, RetirableModel)
        assert isinstance(lent.adapter, PydanticModel)
        assert lent.adapter._endpoint.headers == {"api-key": "sesame"}
        assert lent.adapter._endpoint.base_url == f"{endpoint.url}/openai/v1"


async def test_bedrock_answers_on_the_chat_wire_with_its_key():
    """A6"""
    async with ScriptedEndpoint() as endpoint:
        section = {"type": "bedrock", "base_url": endpoint.url, "api_key": "sesame"}
        models = registry_of({"providers": {"aws": section}})
        model = models.resolve("aws/openai.gpt-oss-120b-1:0", "large")
        request = ModelRequest(system="Be brief.", messages=())
        async with model.stream(request) as events:
            assert isinstance([event async for event in events][-1], Finished)
        await models.aclose()
    adapter = adapter_of(models, "aws/openai.gpt-oss-120b-1:0")
    assert isinstance(adapter, OpenAIChatModel)
    assert adapter._tariff is not None
    (exchange,) = endpoint.requests
    assert (exchange.path, exchange.headers["authorization"]) == ("/v1/chat/completions", "Bearer sesame")


def test_what_a_cloud_misses_is_named():
    by_name = {info.name: info for info in registry_of(environ={"AZURE_OPENAI_API_KEY": "k"}).describe().providers}
    assert by_name["azure"].problem is not None
    assert "AZURE_OPENAI_ENDPOINT" in by_name["azure"].problem
    assert by_name["bedrock"].problem == "Run `longboat connect bedrock`, or set AWS_BEARER_TOKEN_BEDROCK."
    no_region = registry_of(environ={"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "evil.example/"})
    assert "AWS_REGION" in refused(no_region, "bedrock/m")


def test_abilities_are_configured_known_or_assumed():
    """A6"""
    entries = [{"id": "m", "images": False, "reasoning": False}, {"id": "gpt-4o", "reasoning": True}]
    models = registry_of({"providers": {"mine": MINE | {"models": entries}}}, {"ANTHROPIC_API_KEY": "k"})
    assert models.resolve("mine/m", "large").abilities == Abilities(images=False, effort=False)
    assert models.resolve("mine/gpt-4o", "large").abilities == Abilities()
    assert models.resolve("mine/llama-3.3-70b", "large").abilities == Abilities(images=False, effort=False)
    assert models.resolve("mine/unheard-of", "large").abilities == Abilities()
    assert models.resolve("anthropic/claude-3-haiku", "large").abilities == Abilities(effort=False)


def test_an_unknown_window_is_assumed_and_hinted_at():
    """A6"""
    hint = registry_of({"providers": {"mine": MINE}}).describe().hint or ""
    assert "mine/m is unknown; assuming 128,000 tokens" in hint
    known = registry_of({"providers": {"mine": MINE | {"models": [{"id": "m", "context_window": 9}]}}})
    assert known.describe().hint is None
    assert registry_of(environ={"ANTHROPIC_API_KEY": "k"}).describe().hint is None


# When it cannot be


def refused(models: Registry, name: str | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        models.resolve(name, "large")
    assert (caught.value.code, caught.value.retryable) == ("model_not_configured", False)
    return caught.value.message


def test_with_nothing_configured_the_error_says_what_to_do():
    """E3"""
    message = refused(registry_of())
    assert message == "No model is configured. Run `longboat connect` (in the apps: /connect)."


def test_what_is_missing_is_named():
    models = registry_of({"providers": {"mine": MINE | {"api_key": "$MY_KEY"}, "bare": {"type": "openai-compatible"}}})
    assert "ANTHROPIC_API_KEY" in refused(models, "anthropic/claude-opus-5-5")
    assert "MY_KEY" in refused(models, "mine/m")
    assert "providers.bare.base_url" in refused(models, "bare/m")
    assert install_command("local") in refused(models, "local/smollm2-135m")
    assert "'unheard-of'" in refused(models, "unheard-of/m")
    assert "mine, bare, anthropic" in refused(models, "no-slash-at-all")


@pytest.mark.usefixtures("local_runtime")
@pytest.mark.parametrize(
    ("other", "team"),
    [
        ("local/qwen2.5-coder-1.5b", None),
        ("local/no-such", None),
        ("local//no/such.gguf", None),
        ("team/m", {"api_key": "$TEAM_UNSET"}),
        ("team/m", {"headers": {"X-Team": "$TEAM_UNSET"}}),
        ("team/m", {"base_url": "$TEAM_UNSET"}),
        ("team/m", {"base_url": None}),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_list_of_models_goes_without_those_that_are_not_ready(
    tmp_path: Path, other: str, team: dict[str, Any] | None, first: bool
):
    """A6"""
    names = [other, "mine/m"] if first else ["mine/m", other]
    config = {"providers": {"mine": MINE, "team": MINE | (team or {})}, "models": {"large": names}}
    models = Registry(msgspec.convert(config, Config), {}, data_dir=tmp_path)
    assert [spelled(model) for model in models.line_up(None, "large")] == ["mine/m"]
    assert [spelled(model) for model in models.line_up(None, "small")] == ["mine/m"]
    overview = models.describe()
    assert (overview.large_list, overview.small_list, overview.problem) == (("mine/m",), ("mine/m",), None)


def test_a_provider_whose_header_leads_nowhere_is_not_shown_as_ready():
    section = MINE | {"headers": {"X-Team": "$TEAM_UNSET"}}
    models = registry_of({"providers": {"team": section}, "models": {"large": "team/m"}})
    assert "TEAM_UNSET" in refused(models)
    assert "TEAM_UNSET" in (models.describe().problem or "")
    assert [(model.ready, "TEAM_UNSET" in (model.problem or "")) for model in models.models_of("team")] == [
        (False, True)
    ]
    assert "team" not in models.accesses()


def test_a_key_of_the_environment_does_not_go_to_an_address_that_a_file_gives():
    section = {"type": "anthropic", "base_url": "http://somewhere.else"}
    overview = registry_of({"providers": {"theirs": section}}, {"ANTHROPIC_API_KEY": "k"}).describe()
    assert next(info for info in overview.providers if info.name == "theirs").key == "not needed"


# What is shown


def test_the_overview_tells_what_is_set_and_what_is_missing_without_secrets():
    config = {
        "providers": {
            "mine": MINE
            | {"base_url": "http://me:sesame@127.0.0.1:8911/v1", "api_key": "$MY_KEY", "headers": {"x-t": "open"}}
        },
        "models": {"large": "mine/m"},
    }
    overview = registry_of(config, {"MY_KEY": "sesame", "GROQ_API_KEY": "sesame"}).describe()
    assert (overview.large, overview.small, overview.problem) == ("mine/m", "mine/m", None)
    by_name = {info.name: info for info in overview.providers}
    assert by_name["mine"] == registry.ProviderInfo(
        name="mine",
        type="openai-compatible",
        source="config",
        base_url="http://127.0.0.1:8911/v1",
        key="set",
        models=("mine/m",),
    )
    assert (by_name["groq"].key, by_name["groq"].problem) == ("set", None)
    assert (by_name["anthropic"].key, by_name["anthropic"].problem) == (
        "missing",
        "Run `longboat connect anthropic`, or set ANTHROPIC_API_KEY.",
    )
    assert (by_name["local"].key, by_name["local"].source) == ("not needed", "built in")
    assert by_name["local"].models == (f"local/{DEMO.id}",)
    assert "sesame" not in repr(overview)
    assert "open'" not in repr(overview)


def test_the_overview_tells_what_to_do_when_no_model_can_answer():
    assert "longboat connect" in (registry_of().describe().problem or "")
    unready = registry_of({"models": {"large": "anthropic/claude-opus-5-5"}}).describe()
    assert (unready.large, "ANTHROPIC_API_KEY" in (unready.problem or "")) == (None, True)


def test_choosing_a_model_imports_no_provider_library():
    import subprocess

    program = (
        "import sys; from pathlib import Path; from longboat.config.settings import Config;"
        "from longboat.models.registry import Registry;"
        "models = Registry(Config(), {'ANTHROPIC_API_KEY': 'k'}, data_dir=Path('/nowhere'));"
        "models.resolve(None, 'large'); models.describe();"
        "print({'pydantic_ai', 'anthropic', 'genai_prices', 'xllamacpp', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Tools


@pytest.mark.parametrize(
    ("entry", "abilities", "wrapped"),
    [
        ({"id": "m"}, True, True),
        ({"id": "m", "tools": "native"}, True, True),
        ({"id": "m", "tools": "steps"}, True, True),
        ({"id": "m", "tools": "none"}, False, False),
    ],
)
def test_a_chat_model_finds_out_how_it_uses_tools_unless_it_has_none(
    entry: dict[str, Any], abilities: bool, wrapped: bool
):
    section = {"type": "openai-compatible", "base_url": "http://127.0.0.1:1/v1", "models": [entry]}
    lent = registry_of({"providers": {"mine": section}}).resolve("mine/m", "large")
    assert isinstance(lent, RetirableModel)
    assert (lent.abilities.tools, isinstance(lent.adapter, ToolModel)) == (abilities, wrapped)


@pytest.mark.parametrize(("name", "wrapped"), [("claude-sonnet-5-5", False), ("claude-2.1", True)])
def test_a_model_that_is_known_to_have_no_tools_gets_steps(name: str, wrapped: bool):
    lent = registry_of(environ={"ANTHROPIC_API_KEY": "k"}).resolve(f"anthropic/{name}", "large")
    assert isinstance(lent, RetirableModel)
    assert (lent.abilities.tools, isinstance(lent.adapter, ToolModel)) == (True, wrapped)

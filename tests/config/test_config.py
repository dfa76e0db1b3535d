"""`longboat.json`: merged from two files, checked, and complained about by file and line (design.md, Configuration)."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from longboat.config import jsonc
from longboat.config.load import json_schema, load_config, load_user_config, user_config_file
from longboat.config.references import expand
from longboat.config.settings import (
    Config,
    ModelEntry,
    ModelsSection,
    OnRestart,
    PermissionsSection,
    ProviderSection,
    RetrySection,
    ServerSection,
)
from longboat.config.source import locate, read
from longboat.errors import ConfigInvalid


class Files:
    """A home and a project, each with a `longboat.json` or none."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project_dir = root / "project"
        self.user = self.home / ".config" / "longboat" / "longboat.json"
        self.project = self.project_dir / "longboat.json"
        self.user.parent.mkdir(parents=True)
        self.project_dir.mkdir()

    def load(self) -> Config:
        return load_config(self.project_dir, environ={}, user_dir=self.home)

    def complaint(self) -> str:
        with pytest.raises(ConfigInvalid) as caught:
            self.load()
        return caught.value.message


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_no_files_give_the_defaults(files: Files) -> None:
    assert files.load() == Config()


def test_the_example_of_the_design_loads_with_comments_and_trailing_commas(files: Files) -> None:
    files.user.write_text("""\
    // which models there are
    {
      "$schema": "https://example.org/schema.json",
      "providers": {"mine": {"type": "openai-compatible", "base_url": "http://127.0.0.1:8911/v1", "api_key": "x",
                             "models": [{"id": "m", "context_window": 200000},],}},
      "models": {"large": "mine/m", "small": "mine/m"}, /* both
      roles */
      "permissions": {"allow": ["view", "bash(git status)", "bash(npm test *)"], "deny": ["bash(rm *) // no comment"]},
      "mcp": {}, "lsp": {}, "hooks": {},
      "on_restart": "resume",
    }
    """)
    provider = ProviderSection(
        type="openai-compatible",
        base_url="http://127.0.0.1:8911/v1",
        api_key="x",
        models=(ModelEntry(id="m", context_window=200_000),),
    )
    assert files.load() == Config(
        schema_="https://example.org/schema.json",
        providers={"mine": provider},
        models=ModelsSection(large="mine/m", small="mine/m"),
        permissions=PermissionsSection(
            allow=("view", "bash(git status)", "bash(npm test *)"), deny=("bash(rm *) // no comment",)
        ),
        on_restart=OnRestart.RESUME,
    )


def test_a_role_may_have_one_model_or_a_list(files: Files) -> None:
    files.project.write_text('{"models": {"large": ["a/b", "c/d"], "small": "a/s"}}')
    models = files.load().models
    assert (models.names("large"), models.names("small")) == (("a/b", "c/d"), ("a/s",))
    assert ModelsSection().names("large") == ()


def test_the_project_wins_key_by_key_inside_sections(files: Files) -> None:
    files.user.write_text("""{
        "providers": {"mine": {"type": "openai-compatible", "base_url": "http://a", "api_key": "$KEY"},
                      "other": {"type": "groq"}},
        "models": {"large": "mine/a", "small": "mine/s"},
        "retry": {"attempts": 7}, "titles": false, "server": {"drain_s": 3}
    }""")
    files.project.write_text("""{
        "providers": {"mine": {"models": [{"id": "b"}]}},
        "models": {"large": "mine/b"},
        "retry": {"base_s": 0.5}
    }""")
    assert files.load() == Config(
        providers={
            "mine": ProviderSection(
                type="openai-compatible", base_url="http://a", api_key="$KEY", models=(ModelEntry(id="b"),)
            ),
            "other": ProviderSection(type="groq"),
        },
        models=ModelsSection(large="mine/b", small="mine/s"),
        retry=RetrySection(attempts=7, base_s=0.5),
        titles=False,
        server=ServerSection(drain_s=3),
    )


def test_xdg_config_home_moves_the_users_file(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "elsewhere")}
    file = user_config_file(environ, tmp_path)
    assert file == tmp_path / "elsewhere" / "longboat" / "longboat.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"titles": false}')
    assert load_config(tmp_path, environ=environ, user_dir=tmp_path) == Config(titles=False)
    assert load_user_config(environ=environ, user_dir=tmp_path) == Config(titles=False)
    assert load_user_config(environ={}, user_dir=tmp_path) == Config()


def test_a_project_may_not_hold_the_server_section(files: Files) -> None:
    files.project.write_text('{\n  "titles": true,\n  "server": {"drain_s": 1}\n}')
    assert files.complaint() == (
        f"{files.project}:3: server: this section is only allowed in your own file; move it to {files.user}"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{\n"modles": {}}', "2: modles: unknown key: did you mean 'models'?"),
        ('{"models": {\n\n"huge": "a/b"}}', "3: models.huge: unknown key: expected one of detect, large, small"),
        (
            '{"providers": {"a": {"type": "local"},\n "b": {"type": "local", "models": [\n{"id": "x",\n"windo": 3}]}}}',
            "4: providers.b.models[0].windo: unknown key: expected one of context_window, effort, first_token_s, id,"
            " idle_s, images, json_schema, max_output_tokens, path, price, reasoning, send_reasoning, threads, tools",
        ),
        (
            '{"providers": {"good": {"type": "local"},\n"bad": {"type": "nope"}}, "on_restart": 3}',
            "2: providers.bad.type: expected one of 'anthropic', 'anthropic-compatible', 'azure', 'bedrock',"
            " 'google', 'groq', 'local', 'mistral', 'openai', 'openai-compatible', 'openrouter', got 'nope'",
        ),
        (
            '{"providers": {"good": {"type": "local"},\n"bad": {\n"api_key": "k"}}}',
            "2: providers.bad.type: this key is required: expected one of 'anthropic', 'anthropic-compatible',"
            " 'azure', 'bedrock', 'google', 'groq', 'local', 'mistral', 'openai', 'openai-compatible', 'openrouter'",
        ),
        (
            '{"providers": {"a": {"type": "local", "headers": {"X-A": "1",\n"X-B": 2}}}}',
            "2: providers.a.headers.X-B: expected `str`, got `int`",
        ),
        (
            '{"providers": {"a": {"type": "local", "models": [{"id": "x"},\n{}]}}}',
            "2: providers.a.models[1].id: this key is required: expected a value",
        ),
        ('{"on_restart": "never"}', "1: on_restart: expected one of 'interrupt', 'resume', got 'never'"),
        ('{"on_restart": ["secret"]}', "1: on_restart: expected `str`, got `array`"),
        ('{"retry": {\n"attempts": 0}}', "2: retry.attempts: expected `int` >= 1"),
        ('{"retry": []}', "1: retry: expected `object`, got `array`"),
        ("[]", "1: expected an object: { … }"),
        ("", "1: not valid JSON: Expecting value (column 1)"),
        ('{\n"titles": true\n"mcp": {}}', "3: not valid JSON: Expecting ',' delimiter (column 1)"),
        ('{\n\n/* open "titles": true}', "3: this comment is not closed with */"),
        ('{"mcp": {"NaN": "NaN",\n"x": NaN}}', "2: not valid JSON: NaN is not allowed as a number"),
        ('{"mcp": [,]}', "1: not valid JSON: Expecting value (column 10)"),
        (
            '{"models": {\n"large": "\\ud800/x"}}',
            r"2: \ud800 is half of a surrogate pair; the other half is missing",
        ),
        (
            '{"hooks": {"a": "\\ud83d\\ude00",\n"\\udC00": 1}}',
            r"2: \udc00 is half of a surrogate pair; the other half is missing",
        ),
        ('{"mcp": {"a": 1.5,\n"b": -1e999}}', "2: not valid JSON: the number -1e999 is too large"),
        ('{"models": {\n"large": []}}', "2: models.large: expected `array` of length >= 1"),
        ('{"models": {"large": ["a/b",\n3]}}', "2: models.large[1]: expected `str`, got `int`"),
        ('{"limits": {\n"steps": -1}}', "2: limits.steps: expected `int` >= 0"),
        ('{"limits": {\n"minutes": 1e9}}', "2: limits.minutes: expected `float` <= 10080.0"),
        ('{"retry": {"base_s": 1,\n"max_s": 1e308}}', "2: retry.max_s: expected `float` <= 3600.0"),
        ('{"retry": {"base_s": ' + "9" * 400 + "}}", "1: retry.base_s: number out of range"),
        (
            '{"providers": {"a": {"type": "local", "models": [{"id": "x", "context_window": 0}]}}}',
            "1: providers.a.models[0].context_window: expected `int` >= 1",
        ),
        (
            '{"providers": {"a": {"type": "local", "models": [{"id": "x", "max_output_tokens": ' + "9" * 30 + "}]}}}",
            "1: providers.a.models[0].max_output_tokens: expected `int` <= 1000000000",
        ),
        ("[" * 100_000, "1: not valid JSON: nested too deeply"),
    ],
)
def test_a_mistake_is_told_with_file_line_key_and_what_was_expected(files: Files, text: str, complaint: str) -> None:
    files.project.write_text(text)
    assert files.complaint() == f"{files.project}:{complaint}"


def test_a_mistake_in_the_users_file_is_blamed_on_the_users_file(files: Files) -> None:
    files.user.write_text('{"retry":\n{"attempts": "many"}}')
    files.project.write_text('{"retry": {"base_s": 2}}')
    assert files.complaint() == f"{files.user}:2: retry.attempts: expected `int`, got `str`"


@pytest.mark.parametrize("key", ["drain_s", "keep_events_days"])
def test_no_number_of_the_servers_is_without_bound(files: Files, key: str) -> None:
    files.user.write_text(f'{{"server": {{"{key}": 1e300}}}}')
    assert f"server.{key}: expected `float` <= " in files.complaint()


def test_a_value_that_both_files_give_is_blamed_on_the_project(files: Files) -> None:
    files.user.write_text('{"titles": true}')
    files.project.write_text('{\n"titles": "yes"}')
    assert files.complaint() == f"{files.project}:2: titles: expected `bool`, got `str`"


@pytest.mark.parametrize(
    ("texts", "place_of_it"),
    [
        (("", ""), "b.json:1: providers"),
        (("", '// mine\n{"titles": false}'), "b.json:2: providers"),
        (('{"titles":\nfalse}', '// mine\n{"titles": false}'), "a.json:1: providers"),
    ],
)
def test_a_missing_key_at_the_top_has_the_place_of_the_file_that_is_there(
    tmp_path: Path, texts: tuple[str, ...], place_of_it: str
) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, text in zip(files, texts, strict=True):
        if text:
            file.write_text(text)
    assert locate(tuple(map(read, files)), ("providers",)) == f"{tmp_path}/{place_of_it}"


def test_files_that_cannot_be_read_are_named(files: Files) -> None:
    files.project.write_bytes(b'{"titles": "\xff"}')
    assert files.complaint() == f"{files.project}:1: expected a text file in UTF-8"
    files.project.unlink()
    files.project.mkdir()
    assert files.complaint() == f"{files.project}: cannot be read: Is a directory"


def test_a_byte_order_mark_and_crlf_do_no_harm(files: Files) -> None:
    files.project.write_bytes(b'\xef\xbb\xbf{\r\n// why\r\n"titles": false,\r\n}')
    assert files.load() == Config(titles=False)


def test_lines_tell_where_every_key_and_item_stands() -> None:
    text = '{ // "x": [1]\n"a": [1,\n {"b\\n": "}"}, /*\n*/ [],\n], "c": -1.5e3}'
    assert jsonc.lines(text) == {
        (): 1,
        ("a",): 2,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "b\n"): 3,
        ("a", 2): 4,
        ("c",): 5,
    }


def test_references_are_left_alone_until_they_are_expanded(files: Files) -> None:
    files.user.write_text('{"providers": {"p": {"type": "openai", "api_key": "$NOT_SET_ANYWHERE"}}}')
    api_key = files.load().providers["p"].api_key
    assert api_key == "$NOT_SET_ANYWHERE"
    with pytest.raises(ConfigInvalid, match="environment variable NOT_SET_ANYWHERE, which is not set"):
        expand(api_key, {})


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ("$KEY", "secret"),
        ("Bearer ${KEY}!", "Bearer secret!"),
        ("${KEY}$KEY", "secretsecret"),
        ("$$KEY", "$KEY"),
        ("costs $5, 100$", "costs $5, 100$"),
        ("plain", "plain"),
    ],
)
def test_references_expand_to_the_environment(value: str, expanded: str) -> None:
    assert expand(value, {"KEY": "secret"}) == expanded


@pytest.mark.parametrize("value", ["$LONGBOAT_TOKEN", "${LONGBOAT_TOKEN}", "Bearer $LONGBOAT_TOKEN"])
def test_longboats_own_variables_are_never_put_into_a_value(value: str) -> None:
    """ADR 0014: not even the user's own file has them expanded."""
    with pytest.raises(ConfigInvalid, match="LONGBOAT_TOKEN is reserved for Longboat") as caught:
        expand(value, {"LONGBOAT_TOKEN": "the-servers-own"})
    assert "the-servers-own" not in caught.value.message


def test_the_schema_describes_every_section() -> None:
    schema = json_schema()
    properties = schema["$defs"]["Config"]["properties"]
    assert set(properties) == set(Config.__struct_encode_fields__)
    assert msgspec.json.decode(msgspec.json.encode(schema))["$ref"] == "#/$defs/Config"


def test_loading_needs_no_heavy_import() -> None:
    heavy = "{'pydantic', 'httpx2', 'litestar', 'asyncio', 'difflib'}"
    code = f"import sys; import longboat.config.load; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_pipe_or_a_huge_file_is_no_configuration_and_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "longboat.json")
    with pytest.raises(ConfigInvalid, match="expected a regular file"):
        load_config(tmp_path, environ={}, user_dir=tmp_path)
    (tmp_path / "longboat.json").unlink()
    (tmp_path / "longboat.json").symlink_to("/dev/zero")
    with pytest.raises(ConfigInvalid, match="expected a regular file"):
        load_config(tmp_path, environ={}, user_dir=tmp_path)
    (tmp_path / "longboat.json").unlink()
    (tmp_path / "longboat.json").write_bytes(b" " * (300 << 10))
    with pytest.raises(ConfigInvalid, match="larger than 256 KB"):
        load_config(tmp_path, environ={}, user_dir=tmp_path)

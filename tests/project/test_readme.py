"""What README and docs say is there: commands, flags, targets, routes, names, links, tests, settings, packages."""

import ast
import importlib
import inspect
import json
import os
import re
import shlex
import sys
import tomllib
import typing
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import click
import msgspec
import pytest
from benchmarks.__main__ import ROWS

from cases import for_each
from environment import is_hidden
from longboat import errors
from longboat.cli.main import cli
from longboat.client import Client
from longboat.config import settings
from longboat.config.keys import PROVIDER_KEYS
from longboat.config.load import load_config, user_config_file
from longboat.context.hooks import read_hooks
from longboat.models.providers import AWS_REGIONS, AZURE_ADDRESS, KNOWN
from longboat.permissions.rules import Rules
from longboat.server.errors import OWN_CODES
from longboat.server.routes import HANDLERS
from longboat.tools.lsp.client.server_specs import server_specs
from longboat.tools.lsp.client.settings import ServerSettings
from longboat.tools.mcp.settings import read as read_mcp_server
from longboat.tools.registry import built_in_traits

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
HAND_WRITTEN = [page for page in PAGES if page.name not in ("protocol.md", "states.md")]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}

MODULES = [
    str(file.relative_to(ROOT))
    for folder in ("src", "tests", "docs", "examples", "benchmarks", "scripts", "chaos", "evals", "fuzz")
    for file in (ROOT / folder).rglob("*.py")
]

every_page = for_each("page", [str(page.relative_to(ROOT)) for page in HAND_WRITTEN])


def fenced(text: str, language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def code(text: str) -> list[str]:
    """The lines of shell and of unit files, and what stands between backticks."""
    blocks = [*fenced(text, "sh"), *fenced(text, "ini")]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", prose)


# Commands


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of every `longboat` in a page's code."""
    for line in code(text):
        for found in re.finditer(r"(?<![\w.-])(?<!config/)longboat ([^|;&)#]*)", line):
            yield shlex.split(found[1])


def complaint(words: list[str]) -> str | None:
    """What is wrong with a command line: an unknown command, flag or argument."""
    command: click.Command = cli
    context = click.Context(command)
    rest = iter(words)
    for word in rest:
        if word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            option = next((p for p in command.params if name in (*p.opts, *p.secondary_opts) or name == "--help"), None)
            if option is None:
                return f"{command.name} has no {name}"
            if isinstance(option, click.Option) and not option.is_flag and "=" not in word:
                next(rest, None)
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return f"{command.name} has no command {word}"
            command, context = found, click.Context(found, parent=context)
        elif not any(isinstance(param, click.Argument) for param in command.params):
            return f"{command.name} takes no argument {word}"
    return None


@every_page
def test_every_command_and_flag_exists(page: str) -> None:
    wrong = [(words, why) for words in commands(TEXTS[page]) if (why := complaint(words)) is not None]
    assert wrong == []


@pytest.mark.parametrize(
    "line", ["sail", "run --sails 2", "session lost", "stop now", "serve --host 0.0.0.0 --mast", "models pull --fast"]
)
def test_a_command_that_does_not_exist_would_be_found(line: str) -> None:
    assert complaint(shlex.split(line)) is not None


def test_the_readme_shows_the_main_commands() -> None:
    shown = {words[0] for words in commands(TEXTS["README.md"]) if words}
    assert {"run", "runs", "cancel", "serve", "stop", "session", "doctor"} <= shown


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


@every_page
def test_every_make_target_exists(page: str) -> None:
    named = {name for line in code(TEXTS[page]) for name in re.findall(r"(?:^|\s)make ([a-z]+)", line)}
    assert named <= targets()


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    expected = "help setup run test check generate mocks fuzz bench chaos evals dev docs pictures clean"
    assert set(phony.split()) == targets() == set(expected.split())


# HTTP


def requests(text: str) -> Iterator[tuple[str, str]]:
    """Method and path of every curl in a page, its variables and query left out."""
    for line in "\n".join(fenced(text, "sh")).replace("\\\n", " ").splitlines():
        for prefix, path, rest in re.findall(r'(api "?|(?:localhost|:\d+)/v1)(/[^\s"?]+)"?([^|)]*)', line):
            if "$@" in path:
                continue
            explicit = re.search(r"-X (\w+)", rest)
            method = explicit[1] if explicit else "POST" if "--json" in rest else "GET"
            yield method, "/v1" + path if prefix else path


def routed(method: str, path: str) -> bool:
    def fits(route: str) -> bool:
        theirs, ours = route.strip("/").split("/"), path.strip("/").split("/")
        return len(theirs) == len(ours) and all(
            wanted.startswith("{") or wanted == given for wanted, given in zip(theirs, ours, strict=True)
        )

    return any(method in map(str, handler.http_methods) and any(map(fits, handler.paths)) for handler in HANDLERS)


def test_every_curl_asks_for_a_route_that_exists() -> None:
    asked = [request for text in TEXTS.values() for request in requests(text)]
    assert len(asked) > 10
    assert [request for request in asked if not routed(*request)] == []
    assert not routed("POST", "/v1/workspaces/w/nowhere")


# Python


@every_page
def test_python_in_a_page_compiles_and_uses_what_is_there(page: str) -> None:
    for block in fenced(TEXTS[page], "python"):
        for node in ast.walk(ast.parse(block)):
            match node:
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("longboat"):
                    missing = [each.name for each in names if not hasattr(importlib.import_module(module), each.name)]
                    assert missing == []
                case ast.Attribute(value=ast.Name(id="client"), attr=method):
                    assert hasattr(Client, method), method


def test_the_python_page_has_every_method_of_the_client() -> None:
    named = set(re.findall(r"`(\w+)`", TEXTS["docs/python.md"].partition("## All methods")[2]))
    methods = {name for name, member in vars(Client).items() if inspect.isfunction(member) and name[0] != "_"}
    assert methods - {"aclose"} <= named


# Links, pages, tests


@every_page
def test_every_link_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TEXTS[page])
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_site_has_every_page_in_its_navigation() -> None:
    named = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


def test_every_decision_is_in_the_index() -> None:
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", TEXTS["docs/adr/index.md"])
    assert listed == sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))


@pytest.mark.parametrize("page", sorted(name for name in TEXTS if "/howto/" in name))
def test_every_recipe_names_tests_that_exist(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXTS[page])
    assert named
    for file, test in named:
        assert re.search(rf"def {test}\(", (ROOT / file).read_text(encoding="utf-8")), f"{file}::{test}"


@every_page
def test_every_source_file_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w/.-]*\w)/?`", TEXTS[page]))
    assert [name for name in named if "NAME" not in name and "NNNN" not in name and not (ROOT / name).exists()] == []


OF_A_STORY = {"calc.py"}
"""Files that an agent edits in an example."""


@every_page
def test_every_module_that_a_page_names_exists(page: str) -> None:
    """Also one that is named without its folders."""
    named = {name for name in re.findall(r"`([\w/.-]*\w\.py)`", TEXTS[page]) if "NAME" not in name} - OF_A_STORY
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in MODULES)] == []


def test_the_walk_of_a_prompt_names_few_files() -> None:
    """ADR 0039: what a newcomer opens to understand a prompt."""
    walk = TEXTS["docs/architecture.md"].partition("\n## One prompt, end to end\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/]+\.py)`", walk))
    assert {"core/lifecycle.py", "runtime/session/actor.py", "runtime/turn/step.py"} <= named
    assert len(named) <= 30
    assert f"names the {len(named)} files" in TEXTS["docs/adr/0039-files-on-a-prompts-way.md"]


def test_the_retry_page_names_every_module_that_has_a_policy() -> None:
    (listed,) = re.findall(r"^The loops that exist.*?\n\n", TEXTS["docs/howto/add-a-retry-policy.md"], re.M | re.S)
    source = ROOT / "src" / "longboat"
    files = (file for file in source.rglob("*.py") if "Backoff(" in file.read_text(encoding="utf-8"))
    made = {str(file.relative_to(source)) for file in files if makes_backoff(file)}
    assert set(re.findall(r"`([\w/]+\.py)`", listed)) == made


def makes_backoff(file: Path) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id == "Backoff" for function in calls)


def test_the_page_of_the_benchmarks_tells_how_every_row_is_measured() -> None:
    table = TEXTS["benchmarks/README.md"].partition("\n## How it measures\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\w+) \|", table, flags=re.MULTILINE)[1:] == list(ROWS)


@pytest.mark.parametrize("page", [*sorted(name for name in TEXTS if "/adr/" in name), "docs/architecture.md"])
def test_every_name_of_the_code_that_an_explanation_uses_is_there(page: str) -> None:
    spans = re.findall(r"`([^`\n]+)`", TEXTS[page])
    named = {name for span in spans for name in re.findall(r"^(?:\w+\.)?(_?[a-z]\w+)\(", span)}
    named |= {part for span in spans if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*(\.\w+)?", span) for part in span.split(".")}
    known = in_source(r"(?:def|class) (\w+)", ".")
    assert named - known == set()


# Configuration


def rows(section: str) -> dict[str, str]:
    """Key and default of each row of the table under a heading."""
    text = TEXTS["docs/configuration.md"].partition(f"\n### {section}\n")[2].partition("\n#")[0]
    found = re.findall(r"^\| (`.+?`) \| (.+?) \|", text, flags=re.MULTILINE)
    return {key: default for keys, default in found for key in re.findall(r"`([^`]+)`", keys)}


@pytest.mark.parametrize(
    ("section", "shape"),
    [
        ("Top level", settings.Config),
        ("providers.NAME", settings.ProviderSection),
        ("providers.NAME.models", settings.ModelEntry),
        ("models", settings.ModelsSection),
        ("retry", settings.RetrySection),
        ("server", settings.ServerSection),
    ],
)
def test_the_configuration_page_has_every_key_with_its_default(section: str, shape: type[msgspec.Struct]) -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    written = rows(section)
    assert set(written) == set(fields)
    for name, field in fields.items():
        if field.required:
            assert written[name] == "required"
        elif isinstance(field.default, bool | int | float | str):
            assert json.loads(written[name].strip("`")) == field.default, name


def test_the_configuration_page_has_every_provider_and_its_keys() -> None:
    page = TEXTS["docs/configuration.md"]
    for name, known in KNOWN.items():
        (row,) = re.findall(rf"^\| `{name}` \| (.+) \|$", page, flags=re.MULTILINE)
        assert set(known.keys) <= set(re.findall(r"`(\w+)`", row))


def test_every_known_provider_is_a_type_that_the_configuration_takes() -> None:
    types = typing.get_args(typing.get_type_hints(settings.ProviderSection)["type"])
    assert set(KNOWN) <= set(types)
    assert set(types) <= set(re.findall(r"`([\w-]+)`", TEXTS["docs/configuration.md"]))


def test_tests_see_no_provider_key() -> None:
    names = [name for keys in PROVIDER_KEYS.values() for name in keys]
    names += [AZURE_ADDRESS, *AWS_REGIONS, "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS"]
    names += ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]
    assert [name for name in names if not is_hidden(name)] == []
    assert [name for name in os.environ if is_hidden(name) and name != "LONGBOAT_RUNTIME_DIR"] == []


OTHER_JSON = {"docs/python.md": 2}
"""How many blocks of a page are no configuration: a script for the test endpoint, and what it answers."""


def test_every_example_of_a_configuration_loads(tmp_path: Path) -> None:
    examples = [
        block for page, text in TEXTS.items() for block in fenced(text, "json")[: -OTHER_JSON.get(page, 0) or None]
    ]
    assert len(examples) > 10
    for number, block in enumerate(examples):
        user = tmp_path / str(number)
        file = user_config_file({}, user)
        file.parent.mkdir(parents=True)
        file.write_text(block, encoding="utf-8")
        config = load_config(tmp_path, environ={}, user_dir=user)
        Rules.parse(tools=built_in_traits(), allow=config.permissions.allow, deny=config.permissions.deny)
        read_hooks(config.hooks)
        for name, section in config.mcp.items():
            read_mcp_server(name, section)
        server_specs(msgspec.convert(config.lsp, dict[str, ServerSettings]), {})


# Packages and errors


def test_the_dependencies_page_agrees_with_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {"To run": project["dependencies"]} | {
        f"Extra `{name}`": packages for name, packages in project["optional-dependencies"].items()
    }
    for heading, packages in declared.items():
        section = TEXTS["docs/dependencies.md"].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        written = re.findall(r"^\| ([\w-]+) \|", section, flags=re.MULTILINE)
        assert set(written) - {"package"} == {re.split(r"[\[<>=;~! ]", package)[0] for package in packages}, heading


def test_every_package_that_the_source_imports_is_declared() -> None:
    """What only comes along with another package may leave with it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["local"], *extras["keyring"], *extras["otel"], *extras["postgres"]]
    names = {re.split(r"[\[<>=;~! ]", package)[0].lower().replace("_", "-") for package in declared}
    imported = in_source(r"(?m)^ *(?:from|import) (\w+)", "") - sys.stdlib_module_names - {"longboat"}
    known = packages_distributions()
    brought = {module: {each.lower().replace("_", "-") for each in known[module]} for module in imported & set(known)}
    assert {module for module, packages in brought.items() if not packages & names} == set()


def in_source(pattern: str, *rooms: str) -> set[str]:
    files = [file for room in rooms for file in (ROOT / "src" / "longboat" / room).rglob("*.py")]
    return {found for file in files for found in re.findall(pattern, file.read_text(encoding="utf-8"))}


def test_every_error_code_has_its_advice() -> None:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.ModelError]
    codes = {kind.code for kind in classes if issubclass(kind, errors.LongboatError)} | set(OWN_CODES.values())
    codes |= in_source(r'\bcode="(\w+)"', "server", "runtime", "store", "wire", "client", "config")
    codes -= in_source(r'ModelError\([^)]*?code="(\w+)"', "runtime")
    page = TEXTS["docs/troubleshooting.md"]
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_way_in_which_a_run_fails_has_its_advice() -> None:
    titles = in_source(r'title="([^"{]+)"', "models", "runtime")
    assert len(titles) > 10
    assert sorted(title for title in titles if title not in TEXTS["docs/troubleshooting.md"]) == []

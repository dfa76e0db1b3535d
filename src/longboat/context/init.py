"""Writes a first AGENTS.md from a survey of the project, without a model: for `longboat init`."""

import re
from collections.abc import Iterator
from pathlib import Path

from longboat.context.file_cache import display_path
from longboat.context.project_files import ProjectFiles, line_of, table
from longboat.context.survey import Survey, survey
from longboat.context.toolchain import Toolchain, find_toolchain

_PAGES = ("CONTRIBUTING.md", "ARCHITECTURE.md", "docs/architecture.md", "docs/README.md", "README.md")
_CI = (".github/workflows", ".gitlab-ci.yml", ".circleci/config.yml", "azure-pipelines.yml", ".ci")
_PRETTIER = (".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", "prettier.config.js")
_ESLINT = ("eslint.config.js", "eslint.config.mjs", "eslint.config.ts", ".eslintrc.json", ".eslintrc.js", ".eslintrc")


def draft_agents_md(directory: Path) -> str:
    """Markdown for a person to read, correct and complete. Reads the disk: call it off the loop."""
    directory = directory.resolve()
    files, seen = ProjectFiles(directory), survey(directory)
    chain = find_toolchain(files)
    sections = (
        list(_opening(chain, seen)),
        _commands(chain),
        _layout(seen),
        _conventions(files),
        _pages(directory),
        [
            "## Rules",
            "",
            "<!-- What an agent cannot see from the files: decisions, names to use and to avoid, what not to",
            "touch, how to tell that a change is done. Delete what is wrong above; keep this file short. -->",
        ],
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _opening(chain: Toolchain, seen: Survey) -> Iterator[str]:
    yield f"# {chain.name}"
    yield ""
    if chain.description:
        yield chain.description
        yield ""
    if seen.languages:
        yield f"Written in {', '.join(f'{name} ({_files(count)})' for name, count in seen.languages)}."
    if chain.needs:
        yield f"Needs {', '.join(chain.needs)}."
    if not seen.languages and not chain.needs:
        yield "<!-- What is this project, and who uses it? -->"


def _commands(chain: Toolchain) -> list[str]:
    if not chain.steps:
        asked = "<!-- How is it set up, run, tested and checked? One line each, such as: - `make test`: all tests -->"
        return ["## Commands", "", asked]
    lines = (f"- `{step.command}`" + (f": {step.purpose}" if step.purpose else "") for step in chain.steps)
    return ["## Commands", "", *lines]


def _layout(seen: Survey) -> list[str]:
    lines = [f"- `{display_path(Path(area.path))}/`: {_what(area.files, area.language)}" for area in seen.areas]
    lines += [f"- `{display_path(Path(name))}`" for name in seen.sources]
    return ["## Layout", "", *lines] if lines else []


def _conventions(files: ProjectFiles) -> list[str]:
    lines = [f"- {sentence}" for sentence in _find_conventions(files)]
    return ["## Conventions", "", *lines] if lines else []


def _find_conventions(files: ProjectFiles) -> tuple[str, ...]:
    """Sentences about the code style, each with the file it comes from. Only settings, no guesses: people can add
    the rest."""
    return tuple(dict.fromkeys([*_editor(files), *_python(files), *_node(files)]))


def _editor(files: ProjectFiles) -> Iterator[str]:
    """What .editorconfig says of all files."""
    _, found, rest = files.text(".editorconfig").partition("[*]")
    if not found:
        return
    said = dict(re.findall(r"^[ \t]*(\w+)[ \t]*=[ \t]*(\w+)", rest.partition("\n[")[0].lower(), re.MULTILINE))
    match said.get("indent_style"), said.get("indent_size"):
        case "tab", _:
            yield "Indent with tabs (`.editorconfig`)."
        case "space", str(size):
            yield f"Indent with {line_of(size)} spaces (`.editorconfig`)."
    if said.get("max_line_length", "").isdigit():
        yield f"Lines have at most {said['max_line_length']} characters (`.editorconfig`)."


def _python(files: ProjectFiles) -> Iterator[str]:
    tools = table(files.pyproject.get("tool"))
    for name in ("ruff", "black"):
        length = table(tools.get(name)).get("line-length")
        if isinstance(length, int):
            yield f"Python lines have at most {length} characters ({name})."
    if table(tools.get("mypy")).get("strict") is True:
        yield "Types are checked strictly (mypy): annotate every function."
    if table(tools.get("pyright")).get("typeCheckingMode") == "strict":
        yield "Types are checked strictly (pyright): annotate every function."


def _node(files: ProjectFiles) -> Iterator[str]:
    if files.package.get("type") == "module":
        yield "JavaScript is written as ES modules: `import`, not `require`."
    if re.search(r'^\s*"strict"\s*:\s*true', files.text("tsconfig.json").replace("{", "{\n"), re.MULTILINE):
        yield "TypeScript is strict (`tsconfig.json`)."
    if "prettier" in files.package or any(map(files.has, _PRETTIER)):
        yield "Prettier formats the code."
    if any(map(files.has, _ESLINT)):
        yield "ESLint checks the code."


def _what(files: int, language: str | None) -> str:
    return f"{_files(files)}, mostly {language}" if language else _files(files)


def _pages(directory: Path) -> list[str]:
    pages = [name for name in _PAGES if (directory / name).is_file()]
    ci = [name for name in _CI if (directory / name).exists()]
    lines = [f"- Read `{name}` before larger changes." for name in pages]
    lines += [f"- CI is defined in `{name}`; its checks must pass." for name in ci]
    return ["## Also", "", *lines] if lines else []


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"

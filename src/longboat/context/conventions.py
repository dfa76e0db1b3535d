"""A project's code style, where its own settings define it: for `longboat init`.

Reports only settings, never guesses: people can add the rest.
"""

import re
from collections.abc import Iterator

from longboat.context.project_files import ProjectFiles, line_of, table

_PRETTIER = (".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", "prettier.config.js")
_ESLINT = ("eslint.config.js", "eslint.config.mjs", "eslint.config.ts", ".eslintrc.json", ".eslintrc.js", ".eslintrc")


def find_conventions(files: ProjectFiles) -> tuple[str, ...]:
    """Sentences, each with the file it comes from."""
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

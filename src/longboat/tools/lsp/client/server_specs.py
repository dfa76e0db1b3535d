"""Which language servers a workspace has: those in its settings, and the built-in ones whose command is installed.

Searches PATH; starts nothing.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longboat.errors import ConfigInvalid
from longboat.tools.lsp.client.settings import ServerSettings

_C = (".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx", ".hxx", ".m", ".mm")
_PYTHON = ("pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt")
_LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".rs": "rust",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
    ".h": "cpp",
    ".cc": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".cxx": "cpp",
    ".hxx": "cpp",
    ".m": "objective-c",
    ".mm": "objective-cpp",
    ".rb": "ruby",
    ".sh": "shellscript",
    ".bash": "shellscript",
    ".md": "markdown",
    ".yml": "yaml",
    ".cs": "csharp",
    ".kt": "kotlin",
    ".ex": "elixir",
    ".exs": "elixir",
    ".hs": "haskell",
    ".ml": "ocaml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """How one server is started."""

    name: str
    argv: tuple[str, ...]
    file_types: frozenset[str]
    root_markers: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    initialization_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, path: Path) -> bool:
        return path.suffix.lower() in self.file_types

    def root_of(self, path: Path, workspace: Path) -> Path:
        """The outermost directory around `path` that holds a marker, within the workspace.

        The outermost, not the nearest: the members of a workspace of crates or packages belong to one server.
        """
        around = [parent for parent in reversed(path.parents) if parent.is_relative_to(workspace)]
        return next((parent for parent in around if self._is_root(parent)), workspace)

    def _is_root(self, directory: Path) -> bool:
        return any((directory / marker).exists() for marker in self.root_markers)


def language_of(path: Path) -> str:
    """The name that servers have for the language of a file."""
    suffix = path.suffix.lower()
    return _LANGUAGES.get(suffix, suffix.removeprefix("."))


_PYRIGHT_ANALYSIS = {"typeCheckingMode": "standard", "autoSearchPaths": True, "useLibraryCodeForTypes": True}
"""basedpyright's own default warns of every untyped line; a project's config file overrides this."""

_BUILT_IN = (
    ServerSpec(
        name="basedpyright",
        argv=("basedpyright-langserver", "--stdio"),
        file_types=frozenset((".py", ".pyi")),
        root_markers=_PYTHON,
        settings={"basedpyright": {"analysis": _PYRIGHT_ANALYSIS}},
    ),
    ServerSpec(
        name="pyright",
        argv=("pyright-langserver", "--stdio"),
        file_types=frozenset((".py", ".pyi")),
        root_markers=_PYTHON,
        settings={"python": {"analysis": _PYRIGHT_ANALYSIS}},
    ),
    ServerSpec(name="pylsp", argv=("pylsp",), file_types=frozenset((".py", ".pyi")), root_markers=_PYTHON),
    ServerSpec(name="gopls", argv=("gopls",), file_types=frozenset((".go",)), root_markers=("go.work", "go.mod")),
    ServerSpec(
        name="rust-analyzer",
        argv=("rust-analyzer",),
        file_types=frozenset((".rs",)),
        root_markers=("Cargo.toml", "rust-project.json"),
    ),
    ServerSpec(
        name="typescript-language-server",
        argv=("typescript-language-server", "--stdio"),
        file_types=frozenset((".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx")),
        root_markers=("tsconfig.json", "jsconfig.json", "package.json"),
        # Else it answers from one file alone while it loads, and renames an imported name with `as`.
        initialization_options={
            "tsserver": {"useSyntaxServer": "never"},
            "preferences": {"providePrefixAndSuffixTextForRename": False},
        },
    ),
    ServerSpec(
        name="clangd",
        argv=("clangd",),
        file_types=frozenset(_C),
        root_markers=("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "meson.build"),
    ),
)


def server_specs(configured: Mapping[str, ServerSettings], environ: Mapping[str, str]) -> tuple[ServerSpec, ...]:
    """The servers of a workspace, the configured ones first. Several may take one file type if all are configured."""
    known = {spec.name: spec for spec in _BUILT_IN}
    chosen = [_adjusted(name, known.get(name), each) for name, each in configured.items() if each.enabled]
    taken = {suffix for spec in chosen for suffix in spec.file_types}
    for spec in _BUILT_IN:
        free = spec.file_types - taken
        if free and spec.name not in configured and _is_installed(spec.argv[0], environ):
            chosen.append(replace(spec, file_types=free))
            taken |= free
    return tuple(chosen)


def _adjusted(name: str, known: ServerSpec | None, settings: ServerSettings) -> ServerSpec:
    command = settings.command or (known.argv[0] if known else None)
    file_types = _suffixes(settings.file_types) if settings.file_types is not None else known and known.file_types
    if command is None or not file_types:
        built_in = ", ".join(spec.name for spec in _BUILT_IN)
        raise ConfigInvalid(
            f"lsp.{name}: command and file_types are required, except for these built-in servers: {built_in}"
        )
    # Another command has its own arguments.
    args = settings.args if settings.args is not None else known.argv[1:] if known and not settings.command else ()
    markers = settings.root_markers if settings.root_markers is not None else known.root_markers if known else ()
    return ServerSpec(
        name=name,
        argv=(command, *args),
        file_types=file_types,
        root_markers=markers,
        env=settings.env,
        initialization_options=merge_settings(
            known.initialization_options if known else {}, settings.initialization_options
        ),
        settings=merge_settings(known.settings if known else {}, settings.settings),
    )


def _suffixes(file_types: tuple[str, ...]) -> frozenset[str]:
    return frozenset(f".{each.lower().removeprefix('.')}" for each in file_types)


def _is_installed(command: str, environ: Mapping[str, str]) -> bool:
    found = shutil.which(command, path=environ.get("PATH", ""))
    # A PATH with a relative part would have us run what lies in the workspace.
    return found is not None and os.path.isabs(found)


def merge_settings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two settings as one: `above` wins, key by key."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merge_settings(old, value) if both else value  # type: ignore[arg-type]
    return result


def python_settings(root: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Where the packages of a Python project are: what an editor's user would have chosen by hand."""
    own = (root / name / "bin/python" for name in (".venv", "venv"))
    active = (Path(environ[name], "bin/python") for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(name))
    python = next((str(each) for each in (*own, *active) if each.exists()), None)
    if python is None:
        return {}
    return {"python": {"pythonPath": python}, "pylsp": {"plugins": {"jedi": {"environment": python}}}}

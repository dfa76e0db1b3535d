"""A project's languages and layout, from file names alone. Opens no file."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MAX_FILES = 20_000
MAX_DIRECTORIES = 20
MAX_SOURCES = 12
SKIPPED = frozenset(
    {"node_modules", "site-packages", "__pycache__", "venv", "env", "target", "dist", "build", "out", "vendor"}
    | {"coverage", "htmlcov", "site", "tmp"}
)
"""Directories that hold what was made or brought in; so do those whose names begin with a dot."""
_OPENED = frozenset(["src", "lib", "packages", "apps", "crates", "cmd", "internal", "services"])
"""Directories that say little themselves: those within them are shown too."""
_LANGUAGES = {
    "Python": "py pyi",
    "TypeScript": "ts tsx mts cts",
    "JavaScript": "js jsx mjs cjs",
    "Go": "go",
    "Rust": "rs",
    "Java": "java",
    "Kotlin": "kt kts",
    "C": "c h",
    "C++": "cc cpp cxx hpp hh",
    "C#": "cs",
    "Ruby": "rb",
    "PHP": "php",
    "Swift": "swift",
    "Elixir": "ex exs",
    "Scala": "scala",
    "Dart": "dart",
    "Lua": "lua",
    "Haskell": "hs",
    "Zig": "zig",
    "Shell": "sh bash",
    "SQL": "sql",
    "CSS": "css scss less",
    "HTML": "html htm",
    "Vue": "vue",
    "Svelte": "svelte",
    "Terraform": "tf",
}
_BY_SUFFIX = {f".{suffix}": name for name, suffixes in _LANGUAGES.items() for suffix in suffixes.split()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A directory of the layout."""

    path: str
    files: int
    language: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    languages: tuple[tuple[str, int], ...]
    """With their number of files, the most used first."""
    areas: tuple[Area, ...]
    sources: tuple[str, ...] = ()
    """Files of the root that are written in one of the languages, unless there are many."""


def survey(directory: Path, *, most: int = MAX_FILES) -> Survey:
    """`most`: the number of files to look at."""
    total: Counter[str] = Counter()
    files: Counter[str] = Counter()
    by_area: dict[str, Counter[str]] = {}
    sources: list[str] = []
    for steps, name in islice(_files(directory), most):
        language = _BY_SUFFIX.get(os.path.splitext(name)[1].lower())
        total.update([language] if language else [])
        sources += [name] if language and not steps else []
        for area in _areas_of(steps):
            files[area] += 1
            by_area.setdefault(area, Counter()).update([language] if language else [])
    areas = (
        Area(path=area, files=files[area], language=_main(by_area[area], files[area]))
        for area in sorted(files)[:MAX_DIRECTORIES]
    )
    few = tuple(sorted(sources)) if len(sources) <= MAX_SOURCES else ()
    return Survey(languages=tuple(total.most_common(6)), areas=tuple(areas), sources=few)


def _main(languages: Counter[str], files: int) -> str | None:
    """The language of more than half of the files."""
    return next((name for name, count in languages.most_common(1) if count * 2 > files), None)


def _files(directory: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each file as the directories that lead to it and its name."""
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith(".") and name not in SKIPPED)
        steps = Path(parent).relative_to(directory).parts
        for name in names:
            yield steps, name


def _areas_of(steps: tuple[str, ...]) -> Iterator[str]:
    if steps:
        yield steps[0]
    if len(steps) > 1 and steps[0] in _OPENED:
        yield f"{steps[0]}/{steps[1]}"

"""`longboat init`: a first AGENTS.md from what the project's files say, without a model (A5)."""

import json
from pathlib import Path

import pytest

from longboat.context.init import draft_agents_md


def write(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def section(draft: str, title: str) -> list[str]:
    return draft.split(f"## {title}\n\n")[1].split("\n\n", maxsplit=1)[0].strip().split("\n")


def test_a_python_project_is_drafted_whole(tmp_path: Path) -> None:
    pyproject = """
[project]
name = "boat"
description = "Floats."
requires-python = ">=3.11"
[project.optional-dependencies]
dev = ["pytest"]
[tool.pytest.ini_options]
[tool.ruff]
[tool.mypy]
"""
    makefile = (
        ".PHONY: test\nX := 1\ntest: setup ## Run every test\n\tpytest\nsetup:\n\ttrue\ninternal-thing:\n\ttrue\n"
    )
    project = write(
        tmp_path / "boat",
        {
            "pyproject.toml": pyproject,
            "Makefile": makefile,
            "src/boat/__init__.py": "",
            "src/boat/hull.py": "",
            "tests/test_hull.py": "",
            "docs/index.md": "",
            "node_modules/x/index.js": "",
            ".github/workflows/ci.yml": "",
            "CONTRIBUTING.md": "",
        },
    )
    assert draft_agents_md(project) == (
        "# boat\n\nFloats.\n\nWritten in Python (3 files).\nNeeds Python >=3.11.\n\n"
        "## Commands\n\n"
        "- `make test`: Run every test\n- `make setup`\n- `pip install -e '.[dev]'`: set up\n- `pytest`: test\n"
        "- `ruff check`: lint\n- `ruff format`: format\n- `mypy`: types\n\n"
        "## Layout\n\n"
        "- `docs/`: 1 file\n- `src/`: 2 files, mostly Python\n- `src/boat/`: 2 files, mostly Python\n"
        "- `tests/`: 1 file, mostly Python\n\n"
        "## Also\n\n- Read `CONTRIBUTING.md` before larger changes.\n"
        "- CI is defined in `.github/workflows`; its checks must pass.\n\n"
        "## Rules\n\n"
        "<!-- What an agent cannot see from the files: decisions, names to use and to avoid, what not to\n"
        "touch, how to tell that a change is done. Delete what is wrong above; keep this file short. -->\n"
    )


def test_a_node_project_uses_its_own_package_manager_and_scripts(tmp_path: Path) -> None:
    scripts = {"test": "vitest run", "test:e2e": "playwright test", "lint": "eslint .", "prepublish": "x"}
    package = {"name": "web", "scripts": scripts, "engines": {"node": ">=22"}}
    project = write(tmp_path, {"package.json": json.dumps(package), "pnpm-lock.yaml": "", "app.ts": ""})
    draft = draft_agents_md(project)
    assert draft.startswith("# web\n\nWritten in TypeScript (1 file).\nNeeds Node >=22.\n")
    assert section(draft, "Commands") == [
        "- `pnpm install`: set up",
        "- `pnpm run test`: vitest run",
        "- `pnpm run test:e2e`: playwright test",
        "- `pnpm run lint`: eslint .",
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"go.mod": "module x\n\ngo 1.25\n"}, "- `go test ./...`: test"),
        ({"Cargo.toml": '[package]\nname = "x"\n'}, "- `cargo test`: test"),
        ({"uv.lock": "", "pyproject.toml": "[tool.pytest.ini_options]\n"}, "- `uv run pytest`: test"),
        ({"requirements.txt": "x\n"}, "- `pip install -r requirements.txt`: set up"),
        ({"justfile": "# Run the tests\ntest *args:\n  pytest\n"}, "- `just test`: Run the tests"),
        ({"package.json": '{"packageManager": "yarn@4.1.0"}'}, "- `yarn install`: set up"),
        ({"build.gradle.kts": ""}, "- `./gradlew build`: build and test"),
    ],
)
def test_the_usual_package_files_name_their_commands(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert expected in section(draft_agents_md(write(tmp_path, files)), "Commands")


def test_an_empty_directory_gives_a_draft_to_fill_in(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    draft = draft_agents_md(tmp_path / "new")
    assert draft.startswith("# new\n\n<!-- What is this project, and who uses it? -->\n\n## Commands\n\n<!-- How")


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[[[", "package.json": "{", "Cargo.toml": "\0"},
        {"pyproject.toml": "project = 1\ntool = []\n", "package.json": "[]", "Makefile/x": ""},
        {"package.json": '{"scripts": [], "name": 1, "engines": "x"}', "Cargo.toml": "package = 2\n"},
        {"package.json": "[" * 100_000},
    ],
)
def test_broken_package_files_break_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    assert draft_agents_md(write(tmp_path, files)).startswith(f"# {tmp_path.name}\n")


def test_a_package_file_that_links_elsewhere_is_not_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"pyproject.toml": '[project]\nname = "secret"\n'})
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").symlink_to(outside / "pyproject.toml")
    assert draft_agents_md(project).startswith("# project\n")


def test_a_small_python_project_has_its_tests_scripts_and_conventions(tmp_path: Path) -> None:
    pyproject = """
[project]
name = "tiny"
scripts = {tiny = "tiny:main"}
[dependency-groups]
dev = ["pytest>=8", "ruff"]
[tool.ruff]
line-length = 100
[tool.mypy]
strict = true
"""
    readme = "# Tiny\n\n[![badge](x)](y)\n\nA tiny thing. It does more.\n"
    files = {"pyproject.toml": pyproject, "README.md": readme, "tiny.py": "", ".python-version": "3.13\n"}
    draft = draft_agents_md(write(tmp_path, files))
    assert draft.startswith("# tiny\n\nA tiny thing.\n\nWritten in Python (1 file).\nNeeds Python 3.13.\n")
    assert section(draft, "Commands") == [
        "- `pip install -e . --group dev`: set up",
        "- `pytest`: test",
        "- `ruff check`: lint",
        "- `ruff format`: format",
        "- `mypy`: types",
        "- `tiny`: run (tiny:main)",
    ]
    assert section(draft, "Layout") == ["- `tiny.py`"]
    assert section(draft, "Conventions") == [
        "- Python lines have at most 100 characters (ruff).",
        "- Types are checked strictly (mypy): annotate every function.",
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"test_x.py": "import unittest\n"}, ["- `python -m unittest discover`: test"]),
        ({"test_x.py": "assert 1 + 1 == 2\n", "Makefile": "test:\n\tpython3 test_x.py\n"}, ["- `make test`"]),
        ({"tests/test_x.py": "import unittest\n"}, ["- `python -m unittest discover -s tests`: test"]),
        ({"tests/unit/test_x.py": "def test_x(): ...\n"}, ["- `pytest`: test"]),
        ({"manage.py": ""}, ["- `python manage.py test`: test"]),
        ({"Makefile": "prog: prog.c\n\tcc prog.c\n"}, ["- `make`: makes prog"]),
        ({"Makefile": ".PHONY: all ship\nall: x\nship:\nx.o: x.c\nzip: ## Pack it\n"}, None),
        ({"justfile": "# Pack it\nzip:\n  zip\n_hidden:\n  x\n"}, ["- `just zip`: Pack it"]),
    ],
)
def test_small_projects_have_their_commands(tmp_path: Path, files: dict[str, str], expected: list[str] | None) -> None:
    makefile = ["- `make all`", "- `make ship`", "- `make zip`: Pack it"]
    assert section(draft_agents_md(write(tmp_path, files)), "Commands") == (expected or makefile)


def test_a_small_node_project_has_its_scripts_and_conventions(tmp_path: Path) -> None:
    scripts = {"test": "node --test", "seed": "node seed.js", "prepare": "husky", "deploy": "x", "release": "y"}
    package = {"scripts": scripts, "type": "module", "main": "index.js", "prettier": {}}
    files = {
        "package.json": json.dumps(package),
        "index.js": "",
        "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    }
    files[".editorconfig"] = "root = true\n[*]\nindent_style = space\nindent_size = 2\n[*.md]\nmax_line_length = 7\n"
    draft = draft_agents_md(write(tmp_path, files))
    assert section(draft, "Commands")[1:] == [
        "- `npm run test`: node --test",
        "- `npm run seed`: node seed.js",
        "- `node index.js`: run",
    ]
    assert section(draft, "Conventions") == [
        "- Indent with 2 spaces (`.editorconfig`).",
        "- JavaScript is written as ES modules: `import`, not `require`.",
        "- TypeScript is strict (`tsconfig.json`).",
        "- Prettier formats the code.",
    ]

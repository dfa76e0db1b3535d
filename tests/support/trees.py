"""Trees of files for the tests of `ls`, `glob` and `grep`, and the two engines that search them."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import strategies as st

from longboat.testing.tool_context import OpenToolContext
from parts import how, missing

NO_RIPGREP = {"PATH": "/nonexistent"}
ENGINES = [
    pytest.param(None, marks=pytest.mark.skipif(missing("rg"), reason=how("rg")), id="ripgrep"),
    pytest.param(NO_RIPGREP, id="without ripgrep"),
]


def kit_of(directory: Path, engine: Mapping[str, str] | None) -> OpenToolContext:
    return OpenToolContext(directory, environ=engine)


def grow(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Make the files; the first is the oldest. A name that is taken by a directory (or the other way) is left out."""
    for age, (name, content) in enumerate(files.items()):
        path = directory / name
        if path.exists() or any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (1_000_000_000 + age, 1_000_000_000 + age))


_DIRECTORIES = st.lists(st.sampled_from(["a", "b", "build", ".hid", "Ä x"]), max_size=3).map("/".join)
_NAMES = st.sampled_from(["a", "b", "a.py", "b.py", "x.log", ".hidden", ".e.py", "build", "-e", "[b].py", "two\nlines"])
_CONTENTS = st.sampled_from(
    [
        b"needle\n",
        b"no\nneedle here\r\nno\n",
        b"Needle\n",
        b"",
        b"needle\0binary\n",
        b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0",
        b"\xef\xbb\xbfneedle with a mark",
        b"needle \xe9\n",
        b"x\n" * 20 + b"needle needle\n" + b"y\n" * 20,
    ]
)
_RULES = st.lists(
    st.sampled_from(
        [
            *("*.log", "build", "build/", "/a", "a/b", "!x.log", "**/b", "a/**", "*", "!*/", "!*.py", ".h*", "!.hid"),
            *("!.hidden", "b?", "[ab].py", "# comment", "", "a/", "/*.py", "**/a/b", "\\!x", "b.py  ", "!b", "a/*"),
            *("!a/b", "/a/**/b", "Ä x", "[!a].py", "\\[b\\].py", "*.p[y]", "!/b/", "b/../a", "x.log\r"),
        ]
    ),
    max_size=4,
).map(lambda lines: "\n".join(lines) + "\n")
_IGNORES = st.dictionaries(
    st.tuples(_DIRECTORIES, st.sampled_from([".gitignore", ".gitignore", ".ignore"])).map(
        lambda parts: "/".join(filter(None, parts))
    ),
    _RULES,
    max_size=3,
)
_FILES = st.dictionaries(
    st.tuples(_DIRECTORIES, _NAMES).map(lambda parts: "/".join(filter(None, parts))), _CONTENTS, min_size=1, max_size=12
)
_REPOSITORIES = st.sampled_from([{}, {".git/HEAD": b"x"}, {"a/.git/HEAD": b"x"}, {".git/info/exclude": b"b.py\n"}])
TREES = st.tuples(_REPOSITORIES, _IGNORES, _FILES).map(lambda parts: parts[0] | parts[1] | parts[2])

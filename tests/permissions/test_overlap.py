"""Whether a glob of the shell and a rule can mean the same file (A2): never “no” where one file fits both."""

import posixpath
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rules import parse_rule

from longboat.permissions.overlap import may_begin, may_hold, may_name
from longboat.permissions.rules import PathPattern
from work import check_proportion

ROOT = "/w"


def pattern(text: str) -> PathPattern:
    found = parse_rule(f"view({text})").pattern
    assert isinstance(found, PathPattern)
    return found


def by_shell(glob: str, path: str) -> bool:
    """What bash would take for a fitting name: a sign at the beginning of one stands for no dot."""
    parts, names = glob.split("/"), path.split("/")
    return len(parts) == len(names) and all(
        fnmatchcase(name, part) and (name[:1] != "." or part[:1] == ".")
        for part, name in zip(parts, names, strict=True)
    )


@pytest.mark.parametrize(
    ("glob", "rule", "both"),
    [
        ("secrets/ke?", "secrets/**", True),
        ("secrets/ke?", "secrets/key", True),
        ("secrets/ke?", "secrets/kex/y", False),
        ("*", "secrets/**", True),
        ("*", "secrets/key", False),
        ("*/key", "secrets/key", True),
        ("*/key", "**/key", True),
        ("*key", "**/key", True),
        ("*", ".env", False),
        ("?env", ".env", False),
        (".e*", ".env", True),
        ("src/*", "**/.env", False),
        ("src/*.py", "secrets/**", False),
        ("src/*.py", "**/*.pem", False),
        ("secrets_doc*", "secrets/**", False),
        ("[s]ecrets/key", "secrets/key", True),
        ("secrets/[^a]ey", "secrets/key", True),
        ("a*b*c", "a?c", True),
        ("x", "/w/x", True),
        ("*", "/etc/x", False),
    ],
)
def test_what_may_name_the_same_file(glob: str, rule: str, both: bool) -> None:
    assert may_name(f"{ROOT}/{glob}", pattern(rule), ROOT) is both


@pytest.mark.parametrize(
    ("place", "rule", "deep", "holds"),
    [
        (".", "secrets/**", True, True),
        (".", "secrets/key", False, False),
        (".", ".env", False, True),
        ("src", "secrets/**", True, False),
        ("src", "**/key", True, True),
        ("src", "src/a/key", False, False),
        ("secrets/deep", "secrets/**", True, True),
        ("s*", "secrets/key", True, True),
        ("..", "secrets/key", True, True),
    ],
)
def test_what_a_directory_may_hold(place: str, rule: str, deep: bool, holds: bool) -> None:
    path = posixpath.normpath(posixpath.join(ROOT, place))

    assert may_hold(path, pattern(rule), ROOT, deep=deep) is holds


def test_what_may_begin_so() -> None:
    assert may_begin(f"{ROOT}/secr", pattern("secrets/key"), ROOT)
    assert may_begin(ROOT, pattern("secrets/key"), ROOT)
    assert not may_begin(f"{ROOT}/src", pattern("secrets/key"), ROOT)


SIGNS = st.lists(st.sampled_from(["a", "b", ".", "/", "*", "?", "[ab]", "a/b"]), min_size=1, max_size=7).map("".join)
RULES = st.lists(st.sampled_from(["a", "b", ".", "/", "*", "?", "/**/", "**/", "/**", "**"]), min_size=1, max_size=6)
PATHS = st.lists(st.sampled_from(["a", "b", ".a", "ab", "ba", ".b", "a.b"]), min_size=1, max_size=4).map("/".join)


@given(glob=SIGNS, rule=RULES.map("".join), path=PATHS)
@example(glob="*/*", rule="**/a", path="b/a")
def test_a_file_that_fits_both_is_always_told(glob: str, rule: str, path: str) -> None:
    if rule.startswith("/") or ".." in rule.split("/") or not pattern(rule).fits(f"{ROOT}/{path}", ROOT):
        return
    assert may_hold(posixpath.dirname(f"{ROOT}/{path}"), pattern(rule), ROOT, deep=False)
    assert may_hold(ROOT, pattern(rule), ROOT, deep=True)
    assert may_name(f"{ROOT}/{path}", pattern(rule), ROOT)
    if by_shell(glob, path):
        assert may_name(f"{ROOT}/{glob}", pattern(rule), ROOT)


@pytest.mark.parametrize("piece", ["*a", "?", "*", "a/*"])
def test_a_long_glob_takes_steps_in_proportion(piece: str) -> None:
    rule = pattern("**/a*b*a*b/**/secrets/**")

    check_proportion(lambda times: may_name(f"{ROOT}/{piece * times}", rule, ROOT), 60)

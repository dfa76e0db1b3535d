"""Names of MCP tools: every provider takes them, and no two are the same."""

import re

from hypothesis import given
from hypothesis import strategies as st

from longboat.tools.mcp.tool import LIMIT, tool_names


def test_a_plain_name_is_kept() -> None:
    assert tool_names("git", ["status", "commit-all"]) == {
        "status": "mcp__git__status",
        "commit-all": "mcp__git__commit-all",
    }


def test_an_odd_name_yields_to_a_plain_one() -> None:
    names = tool_names("fs", ["read.file", "read_file"])
    assert names["read_file"] == "mcp__fs__read_file"
    assert re.fullmatch(r"mcp__fs__read_file_[0-9a-f]{8}", names["read.file"])
    assert tool_names("fs", ["read.file"]) == {"read.file": "mcp__fs__read_file"}


def test_a_long_name_is_cut_and_told_apart() -> None:
    names = tool_names("s" * 32, ["t" * 100, "t" * 101])
    assert len(set(names.values())) == 2
    assert all(len(name) == LIMIT for name in names.values())


@given(st.lists(st.text(max_size=80), unique=True, max_size=30))
def test_all_names_fit_and_differ(tools: list[str]) -> None:
    names = tool_names("server", tools)
    assert names.keys() == set(tools)
    assert len(set(names.values())) == len(tools)
    assert all(re.fullmatch(r"mcp__server__[A-Za-z0-9_-]+", name) and len(name) <= LIMIT for name in names.values())

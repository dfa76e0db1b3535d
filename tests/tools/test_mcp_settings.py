"""The `mcp` section: what is accepted, what is filled in, what is never shown."""

from typing import Any

import pytest

from longboat.errors import ConfigInvalid
from longboat.tools.mcp.settings import McpServer, Target, kind_of, read, resolve


def test_the_type_follows_from_what_is_given() -> None:
    kinds = [
        kind_of(read("a", value))
        for value in ({"command": "x"}, {"url": "http://x"}, {"type": "sse", "url": "http://x"})
    ]
    assert kinds == ["stdio", "http", "sse"]


def test_a_full_entry_is_read() -> None:
    value = {"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}, "enabled": False, "timeout_s": 3}
    assert read("a", value) == McpServer(
        type="http", url="https://x/mcp", headers={"A": "b"}, enabled=False, timeout_s=3.0
    )


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("a", {}, "mcp.a: a stdio server needs a command; an http or sse server needs a url"),
        ("a", {"type": "sse"}, "mcp.a: a sse server needs a url"),
        ("a", {"type": "carrier pigeon"}, "mcp.a: Invalid enum value 'carrier pigeon' - at `$.type`"),
        ("a", {"command": "x", "cmd": "y"}, "mcp.a: Object contains unknown field `cmd`"),
        ("a", {"command": "x", "timeout_s": 0}, "mcp.a: Expected `float` > 0.0 - at `$.timeout_s`"),
        ("a", "npx", "mcp.a: Expected `object`, got `str`"),
    ],
)
def test_a_wrong_entry_is_named(name: str, value: Any, complaint: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read(name, value)
    assert caught.value.message == complaint


@pytest.mark.parametrize("name", ["", "a__b", "a_", "-a", "a b", "ä", "a.b", "x" * 33])
def test_a_name_that_could_be_mistaken_for_another_is_refused(name: str) -> None:
    """`mcp__a__b__c` must belong to one server alone: permission rules match it."""
    with pytest.raises(ConfigInvalid, match="rename it"):
        read(name, {"command": "x"})


def resolved(environ: dict[str, str], **value: Any) -> Target:
    return resolve("a", read("a", value), environ)


def test_variables_are_filled_in_everywhere() -> None:
    environ = {"A": "1", "B": "2"}
    target = resolved(environ, command="$A", args=["${B}x", "$$A"], env={"K": "$A$B"})
    assert (target.command, target.args, target.env) == ("1", ("2x", "$A"), {"K": "12"})
    target = resolved(environ, url="http://host$A/", headers={"H": "<$B>"})
    assert (target.url, target.headers) == ("http://host1/", {"H": "<2>"})


def test_a_variable_that_is_not_set_is_named_when_we_connect_and_not_before() -> None:
    server = read("a", {"command": "x", "env": {"K": "$MISSING"}})
    with pytest.raises(ConfigInvalid, match="MISSING, which is not set"):
        resolve("a", server, {})


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "http://[", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"mcp.a.url: expected a URL"):
        resolved({}, url=url)


def test_secrets_are_taken_out_of_what_is_shown() -> None:
    target = resolved(
        {"TOKEN": "tok-abcdef"},
        url="https://user:passw0rd@host/mcp?key=query-secret",
        headers={"Authorization": "Bearer $TOKEN", "X-Other": "literal-secret"},
        env={"API_KEY": "env-secret", "MODE": "production"},
    )
    text = "tok-abcdef Bearer tok-abcdef passw0rd key=query-secret literal-secret env-secret production"
    assert target.without_secrets(text) == "$TOKEN *** $TOKEN *** *** *** *** production"

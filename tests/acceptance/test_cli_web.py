"""`longboat web` and `longboat attach`: the way to a browser, and to a server elsewhere."""

import html
import re
from pathlib import Path

import httpx2
import pytest
from cli_home import Home

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.shows_secrets("server token", reason="the link to the page carries it: that is what it is for"),
]

LINK = re.compile(r"http://127\.0\.0\.1:\d+/login\?token=\S+")


@pytest.fixture
def home(own_home: Home) -> Home:
    return own_home


def test_the_link_logs_a_browser_in_and_leads_to_the_page(home: Home) -> None:
    """F1, F3: from nothing, on a machine without a browser; and the same address after a restart."""
    cwd = home.workspace("here")
    shown = home.longboat("web", "--no-open", cwd=cwd)
    assert shown.code == 0, shown.err
    (link,) = LINK.findall(shown.out)
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(link)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "token" not in str(page.url)
        assert home.longboat("stop", cwd=cwd).code == 0
        assert home.longboat("web", "--no-open", cwd=cwd).out == shown.out
        assert browser.get(str(page.url)).status_code == 200, "the cookie is good after a restart"


def test_the_link_has_the_token_of_the_server_that_is_named_and_no_other(home: Home) -> None:
    cwd, other = home.workspace("here"), home.path / "run" / "two.sock"
    assert home.longboat("web", "--no-open", cwd=cwd).code == 0
    home.serve("--socket", str(other), "--data-dir", str(home.path / "data2"))
    named = {"LONGBOAT_SOCKET": str(other)}
    shown = home.longboat("web", "--no-open", cwd=cwd, **named)
    assert shown.code == 0, shown.err
    assert httpx2.get(LINK.findall(shown.out)[0]).status_code == 303, "the other server let the browser in"
    other.with_name("two.sock.json").unlink()
    unknown = home.longboat("web", "--no-open", cwd=cwd, **named)
    assert (unknown.code, unknown.out) == (1, "")
    assert "LONGBOAT_TOKEN" in unknown.err
    given = home.longboat("web", "--no-open", cwd=cwd, LONGBOAT_TOKEN="s3cret", **named)
    assert "token=s3cret&" in given.out


def test_a_browser_is_told_by_a_private_file_and_not_by_a_command_line(home: Home) -> None:
    """On a shared machine everybody can read command lines."""
    cwd, seen = home.workspace("here"), home.path / "seen"
    browser = home.path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" > {seen}.url\nstat -c %a "${{1#file://}}" > {seen}.mode\n')
    browser.chmod(0o755)
    opened = home.longboat("web", cwd=cwd, DISPLAY=":9", BROWSER=str(browser))
    assert (opened.code, LINK.search(opened.out)) == (0, None), opened.err
    place = Path(f"{seen}.url").read_text().strip()
    assert "token" not in place
    assert Path(f"{seen}.mode").read_text().strip() == "600"
    page = html.unescape(Path(place.removeprefix("file://")).read_text())
    assert httpx2.get(LINK.findall(page)[0].rstrip('"><')).status_code == 303


def test_where_no_browser_can_be_opened_the_token_goes_into_no_log(home: Home) -> None:
    told = home.longboat("web", cwd=home.workspace("here"), DISPLAY="", WAYLAND_DISPLAY="")
    assert told.code == 1
    assert "--no-open" in told.err
    assert "token=" not in told.out + told.err


@pytest.mark.parametrize("command", [("attach",), ("attach", "http://127.0.0.1:1", "--token", "x")])
def test_the_terminal_app_needs_a_terminal_and_says_so(home: Home, command: tuple[str, ...]) -> None:
    told = home.longboat(*command, cwd=home.workspace("here"))
    assert told.code == 1
    assert "longboat run" in told.err


def test_without_a_terminal_longboat_alone_shows_its_help(home: Home) -> None:
    told = home.longboat(cwd=home.workspace("here"))
    assert told.code == 2
    assert "longboat web" in told.out


def test_an_option_before_a_command_is_not_silently_lost(home: Home) -> None:
    told = home.longboat("--model", "a/b", "runs", cwd=home.workspace("here"))
    assert told.code == 2
    assert "longboat runs" in told.err

"""What comes from elsewhere is inert in the terminal app: no escape gets through, no markup is obeyed (issue 4)."""

from pathlib import Path

import pytest
from textual import events
from tui_deck import Deck, aboard, harbour

from longboat.client import Client
from longboat.testing import CallTool, Say, ScriptedModel, ScriptedTool, Think
from longboat.tui.toolcard import ToolCard
from longboat.wire.requests import Approve

ESCAPES = [
    "\x1b[2J\x1b[H",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;title\x07",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "\x1bP+q544e\x1b\\",
    "\x9b31m",
    "\x1b[?1049l",
    "\x07\x08\x7f",
    "\r\rover",
    "\u202egnp.exe",
    "\u2066hidden\u2069",
    "\x1b[6n",
    "\x00nul",
]
MARKUP = [
    "[red]x[/red]",
    "[@click=app.quit]quit[/]",
    "[/]",
    "[link=https://evil.example]x[/link]",
    "[bold",
    "$text-error",
    "[on red]x[/on red]",
    "\\[red]",
    "[$primary]x[/]",
]


def assert_inert(deck: Deck) -> None:
    """What would be written to the terminal between Textual's own escapes has no control character."""
    for line in deck.lines:
        for segment in line:
            if segment.control is None:
                bad = [char for char in segment.text if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0]
                assert not bad, segment.text
                assert not set(segment.text) & set("\u202e\u2066\u2069\u2028")
                link = segment.style.link if segment.style else None
                assert not link or "evil" not in link


@pytest.mark.parametrize("payload", [*ESCAPES, *MARKUP])
async def test_a_payload_in_every_place_stays_text(tmp_path: Path, payload: str) -> None:
    tool = ScriptedTool("look", f"result {payload} end")
    model = ScriptedModel(
        [
            [
                Think(f"thought {payload}"),
                Say(f"said {payload} end\n\n```\n{payload}\n```\n"),
                CallTool("look", {"path": f"path {payload}"}),
                CallTool("bash", {"command": f"echo '{payload}'".replace("\x00", "")}),
            ],
            [Say(f"last {payload} word")],
        ]
    )
    async with (
        harbour(tmp_path, model).serving(tools=[tool]) as port,
        aboard(port, size=(110, 50), approve=Approve.ALL) as deck,
    ):
        await deck.say(f"prompt {payload.replace(chr(13), '')} end")
        await deck.until(lambda: deck.idle and len(deck.answers) == 2)
        await deck.pilot.pause()
        assert_inert(deck)
        for card in deck.app.query(ToolCard):
            card.toggle()
        await deck.say(f"/rename title {payload.replace(chr(13), '')}")
        await deck.pilot.pause()
        assert_inert(deck)
        assert not deck.app._exit
        if payload in MARKUP:
            assert payload in deck.prompts[0]
            assert f"result {payload} end" in deck.text_of(deck.cards[0])


async def test_a_client_with_a_strange_name_and_a_file_with_one_are_harmless(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    (Path(port.project) / "a[red]\x1b[2Jb.txt").write_text("")
    async with port.serving(), aboard(port) as deck, Client(socket=port.socket, client_id="b.o:b") as bob:
        await bob.join(port.project)
        await deck.type("see @red")
        await deck.until(lambda: deck.app.composer.choices.is_open)
        assert_inert(deck)
        await deck.pilot.press("tab")
        assert "@a[red]" in deck.app.composer.input.text
        assert_inert(deck)


async def test_another_clients_prompt_is_harmless_when_it_is_called_up_again(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        async with Client(socket=port.socket, client_id="bob") as bob:
            async for _ in bob.run("evil \x1b[2J\x9b31m prompt", path=port.project):
                pass
        async with aboard(port, resume=True) as deck:
            await deck.until(lambda: deck.answers)
            await deck.pilot.press("up")
            assert deck.app.composer.input.text.startswith("evil")
            assert_inert(deck)
            deck.app.post_message(events.Paste("pasted \x1b]52;c;x\x07"))
            await deck.pilot.pause()
            assert "pasted" in deck.app.composer.input.text
            assert_inert(deck)


async def test_a_link_is_named_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    model = ScriptedModel([[Say("[go](javascript:alert) and [page](https://page.example)")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        monkeypatch.setattr(deck.app, "open_url", lambda url, **_: opened.append(url))
        await deck.say("links")
        await deck.until(lambda: deck.idle and deck.answers)
        for href in ("file:///etc/passwd", "https://page.example"):
            block = deck.app.query("MarkdownParagraph").last()
            await block.action_link(href)  # type: ignore[attr-defined]
        await deck.until(lambda: opened == ["https://page.example"])

"""Texts that would act on a terminal, on Rich or on Textual if they were printed as they are."""

import unicodedata

from rich.segment import Segment

ESC, BEL, ST, CSI8, OSC8, DCS8 = "\x1b", "\x07", "\x1b\\", "\x9b", "\x9d", "\x90"

PAYLOADS = (
    f"{ESC}[2J cleared",
    f"{ESC}[H{ESC}[K homed",
    f"{ESC}[10A up",
    f"{ESC}[?1049l left the screen",
    f"{ESC}[?25l no cursor",
    f"{ESC}[31mred{ESC}[0m",
    f"{ESC}[8mconcealed{ESC}[28m",
    f"{ESC}[6n where",
    f"{ESC}[c who",
    f"{ESC}[21t title back",
    f"{ESC}[?1000h mouse",
    f"{ESC}[>4;2m keys",
    f"{ESC}c reset",
    f"{ESC}7{ESC}8 saved",
    f"{ESC}(0 lines",
    f"{ESC}#8 aligned",
    f"{ESC}]0;owned{BEL} title",
    f"{ESC}]2;owned{ST} title",
    f"{ESC}]52;c;cm0gLXJmIC8={BEL} clipboard",
    f"{ESC}]52;p;cm0gLXJmIC8={ST} clipboard",
    f"{ESC}]8;;https://evil.example{ST}link{ESC}]8;;{ST}",
    f"{ESC}]9;notice{BEL}",
    f"{ESC}]777;notify;a;b{BEL}",
    f"{ESC}]1337;File=inline=1:AAAA{BEL}",
    f"{ESC}]4;0;rgb:ff/ff/ff{BEL}",
    f"{ESC}P$q q{ST} asked",
    f"{ESC}P+q544e{ST} asked",
    f"{ESC}_Gf=100;AAAA{ST} picture",
    f"{ESC}^private{ST}",
    f"{ESC}Xstring{ST}",
    f"{CSI8}2J eight bits",
    f"{OSC8}52;c;AAAA\x9c eight bits",
    f"{DCS8}q\x9c eight bits",
    "back\b\b\b\bforward",
    "over\rwritten",
    "bell\a and \x0c form \x0b feed",
    "nul\x00 del\x7f shift\x0e\x0f",
    "\x1bPtmux;\x1b\x1b]52;c;AAAA\x07\x1b\\ through tmux",
    "next\x85line and \x84 index",
    "safe\u202egnp.exe turned",
    "\u2066isolated\u2069 \u2067\u2068",
    "\u200f\u200e\u061c marks",
    "line\u2028and\u2029paragraph",
    "zero\u200bwidth r\u200dm \ufeffmark",
    "tagged \U000e0072\U000e006d\U000e0020\U000e007f",
    "[bold]not bold[/bold]",
    "[@click=app.quit]press me[/]",
    "[@click='app.bell()']press[/@click]",
    "[link=https://evil.example]press[/link]",
    "[on red]red[/]",
    "[$error]variable[/]",
    "[/] closes nothing [",
    "[b][i][u][reverse]",
    "\\[escaped] \\\\[twice]",
    ":warning: :skull:",
    "[#ff0000 link='https://evil.example']x[/]",
    "$(tput clear) `reset`",
    "half \ud83d of a character",
)

GROUPS = tuple(PAYLOADS[start : start + 6] for start in range(0, len(PAYLOADS), 6))

_OWN_HANDLERS = {"@mouse.down", "@mouse.up", "offset", "option"}
"""What Textual itself puts on scroll bars, on text that can be marked and on options: never taken from the text."""


def acting(pieces: list[Segment]) -> list[str]:
    """What of these would do more than be read."""
    found = [f"control codes {piece.control}" for piece in pieces if piece.control]
    for piece in pieces:
        found += [f"{character!r} in {piece.text!r}" for character in piece.text if _acts(character)]
        if piece.style is not None:
            handlers = {name: what for name, what in piece.style.meta.items() if name not in _OWN_HANDLERS}
            if str(handlers.get("@click", "")).startswith("link("):
                del handlers["@click"]  # of Markdown: it tells where the link leads, and opens nothing but pages
            found += [f"handler {name} on {piece.text!r}" for name in handlers]
            found += [f"link {piece.style.link} on {piece.text!r}"] if piece.style.link else []
    return found


def _acts(character: str) -> bool:
    joins_emoji = character in "\u200c\u200d"
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and not joins_emoji

"""Frames of terminals as one animated SVG: no script, nothing from elsewhere.

Every line that is ever shown is drawn once; a frame says which line stands where. The frames lie side by side, and one
CSS animation moves them past. Who wants no motion sees the last frame. Pure.
"""

from collections.abc import Iterator, Sequence
from html import escape
from io import StringIO

from rich.ansi import AnsiDecoder
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from picturing.recording import Frame, Pane

CELL, LINE, BAR, MARGIN = 8.43, 18, 30, 12
INK, PAPER, EDGE, FAINT = "#d4d7dd", "#14181f", "#2b323d", "#8b93a1"
COLORS = ("#14181f", "#f0757d", "#7fce8b", "#e3b965", "#6cabf5", "#c793ea", "#5cc8d0", "#d4d7dd")
BRIGHT = ("#8b93a1", "#ff8f96", "#9ae3a4", "#f2cf83", "#8dc0ff", "#dbb1f5", "#80dde4", "#ffffff")

_CONSOLE = Console(file=StringIO(), color_system="truecolor", width=400)


def film(panes: Sequence[Pane], frames: Sequence[Frame]) -> str:
    """The whole picture."""
    lines: dict[str, int] = {}
    width = round(max(pane.columns for pane in panes) * CELL) + 2 * MARGIN
    tops = _tops(panes)
    height = tops[-1] - 10
    strip = "".join(_frame(panes, tops, frame, at * width, lines) for at, frame in enumerate(frames))
    drawn = "".join(f'<g id="l{number}">{svg}</g>' for svg, number in lines.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{_style(frames, width)}</style>\n<defs>{drawn}</defs>\n"
        f"{''.join(_window(pane, top, width) for pane, top in zip(panes, tops, strict=False))}\n"
        f'<svg width="{width}" height="{height}" overflow="hidden"><g class="film">{strip}</g></svg>\n</svg>\n'
    )


def _tops(panes: Sequence[Pane]) -> list[int]:
    tops = [0]
    for pane in panes:
        tops.append(tops[-1] + BAR + pane.rows * LINE + 2 * MARGIN + 10)
    return tops


def _style(frames: Sequence[Frame], width: int) -> str:
    whole = sum(frame.seconds for frame in frames)
    passed, stops = 0.0, []
    for at, frame in enumerate(frames):
        stops.append(f"{100 * passed / whole:.2f}%{{transform:translateX({-at * width}px)}}")
        passed += frame.seconds
    last = f"transform:translateX({-(len(frames) - 1) * width}px)"
    return (
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{INK};white-space:pre}}"
        ".b{font-weight:bold}.i{font-style:italic}.d{opacity:.65}"
        f".film{{{last};animation:play {whole:.1f}s step-end infinite}}"
        f"@keyframes play{{{''.join(stops)}100%{{{last}}}}}"
        "@media (prefers-reduced-motion:reduce){.film{animation:none}}"
    )


def _window(pane: Pane, top: int, width: int) -> str:
    height = BAR + pane.rows * LINE + 2 * MARGIN
    dots = "".join(f'<circle cx="{18 + 16 * at}" cy="{top + 15}" r="5" fill="{EDGE}"/>' for at in range(3))
    return (
        f'<rect x=".5" y="{top + 0.5}" width="{width - 1}" height="{height - 1}" rx="8" fill="{PAPER}" '
        f'stroke="{EDGE}"/>'
        f'{dots}<text x="{width / 2}" y="{top + 20}" text-anchor="middle" style="fill:{FAINT}">'
        f"{escape(pane.who)} — harbor</text>"
    )


def _frame(panes: Sequence[Pane], tops: Sequence[int], frame: Frame, left: int, lines: dict[str, int]) -> str:
    used = []
    for pane, top, shown in zip(panes, tops, frame.panes, strict=False):
        # Colors go on from line to line: one decoder for all of them.
        for row, line in enumerate(AnsiDecoder().decode("\n".join(shown[: pane.rows]))):
            if svg := "".join(_spans(line)):
                number = lines.setdefault(svg, len(lines))
                used.append(f'<use href="#l{number}" y="{top + BAR + MARGIN + LINE * row}"/>')
    return f'<g transform="translate({left + MARGIN})">{"".join(used)}</g>'


def _spans(line: Text) -> Iterator[str]:
    """The pieces of a line that look alike; each at its column, and as wide as its columns are."""
    column = 0
    for segment in line.render(_CONSOLE):
        text, style = segment.text, segment.style or Style()
        if text.strip():
            lead = len(text) - len(text.lstrip())
            cells = Text(text.strip()).cell_len
            yield (
                f'<text x="{(column + lead) * CELL:.6g}" y="13" textLength="{cells * CELL:.6g}"{_look(style)}>'
                f"{escape(text.strip(), quote=False)}</text>"
            )
        column += Text(text).cell_len


def _look(style: Style) -> str:
    classes = " ".join(name for name, on in (("b", style.bold), ("i", style.italic), ("d", style.dim)) if on)
    look = f' class="{classes}"' if classes else ""
    return look + (f' style="fill:{_hex(style.color)}"' if style.color and not style.color.is_default else "")


def _hex(color: Color) -> str:
    if color.number is not None and color.number < 16:
        return (COLORS + BRIGHT)[color.number]
    return color.get_truecolor(DIMMED_MONOKAI).hex

"""The pictures of README and docs: each is there, used, small, told in words, and loads nothing from elsewhere."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_BYTES = {".png": 250_000, ".svg": 300_000}
FILES = sorted(PICTURES.iterdir())

every_picture = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def named() -> list[tuple[Path, str, Path]]:
    """Page, alternative text and file of every picture in a page."""
    return [
        (page, text, (page.parent / target).resolve())
        for page in PAGES
        for text, target in re.findall(
            r"!\[(.*?)\]\(([^)#]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"), re.DOTALL
        )
    ]


def test_every_picture_that_a_page_names_is_there() -> None:
    assert len(named()) > 5
    assert [(page.name, file.name) for page, _, file in named() if file not in FILES] == []


def test_every_picture_has_its_words() -> None:
    assert [(page.name, file.name) for page, text, file in named() if len(text.split()) < 5] == []


@every_picture
def test_every_picture_is_shown_somewhere(file: Path) -> None:
    assert file in {shown for _, _, shown in named()}


@every_picture
def test_every_picture_is_small(file: Path) -> None:
    assert file.stat().st_size < MAX_BYTES[file.suffix]


@pytest.mark.parametrize("file", [file for file in FILES if file.suffix == ".svg"], ids=lambda file: file.name)
def test_a_drawing_has_no_script_and_nothing_from_elsewhere(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert foreign(text) == []


def foreign(svg: str) -> list[str]:
    """What in a drawing could act, or be fetched."""
    found = re.findall(r"@import|@font-face|javascript:|data:|url\((?!['\"]?#)[^)]*\)", svg)
    for element in ElementTree.fromstring(svg).iter():
        tag = element.tag.rpartition("}")[2]
        found += [tag] if tag in ("script", "foreignObject", "image", "a", "animate", "set") else []
        for name, value in element.attrib.items():
            own = name.rpartition("}")[2]
            if own.startswith("on") or (own in ("href", "src") and not value.startswith("#")):
                found.append(f"{own}={value}")
    return found


@pytest.mark.parametrize(
    "inside",
    [
        "<script/>",
        '<image href="https://elsewhere.example/a.png"/>',
        '<g onload="act()"/>',
        "<style>@font-face { src: url(https://elsewhere.example/a.woff2) }</style>",
        '<g style="fill: url(http://elsewhere.example/#a)"/>',
    ],
)
def test_what_acts_or_is_fetched_would_be_found(inside: str) -> None:
    assert foreign(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')


def test_the_recording_stands_still_for_those_who_want_no_motion() -> None:
    text = (PICTURES / "run.svg").read_text(encoding="utf-8")
    assert "@media (prefers-reduced-motion:reduce){.film{animation:none}}" in text
    (end,) = set(re.findall(r"\.film\{transform:translateX\((-\d+)px\)", text))
    assert f"100%{{transform:translateX({end}px)}}" in text

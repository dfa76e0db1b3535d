"""The table of keys in `web.md`, from the table that the page itself uses."""

import re
from pathlib import Path

from markup import table

import longboat

KEYS = Path(longboat.__file__).parent / "web" / "js" / "keys.js"
WEB = Path(__file__).with_name("web.md")
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->"
ROW = re.compile(r"^  \['\w*', '([^']+)', '([^']+)', '([^']+)'\],$", re.MULTILINE)


def web() -> str:
    """The page that is there, with its table of keys generated again."""
    before, begin, rest = WEB.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{keys()}\n\n{end}{after}"


def keys() -> str:
    rows = [[f"`{key}`", where, what] for key, where, what in ROW.findall(KEYS.read_text(encoding="utf-8"))]
    return table(["keys", "where", "what they do"], rows)

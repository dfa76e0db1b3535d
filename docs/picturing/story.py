"""What happens on the pictures: a small repository with a bug, and what the scripted model says and does about it.

Must not know who looks on. Everything else on the pictures is real: the server, the tools, the tests that fail, the
commands, the diffs, who answered.
"""

from dataclasses import dataclass
from typing import Any

from longboat.testing import CallTool, Delay, HttpStep, Refuse, Say, Think, Use, words

PROMPT = "The tide test fails. Find out why and fix it."
TITLE = "A high tide in the past"
CHOICES = ("The first high tide of the next day", "None, and every caller checks for it")
TESTS = "python3 -m unittest"

FILES = {
    "AGENTS.md": f"# Harbor\n\nPython, no packages. Tests: `{TESTS}`\n",
    "harbor/__init__.py": '"""When ships can come in."""\n',
    "harbor/tides.py": '''"""High and low water."""

from datetime import datetime, timedelta

HIGH_WATER = ["05:12", "17:38"]


def next_high_tide(now: datetime) -> datetime:
    """The first high water after `now`."""
    for clock in HIGH_WATER:
        hour, minute = map(int, clock.split(":"))
        tide = now.replace(hour=hour, minute=minute, second=0)
        if tide > now:
            return tide
    return tide
''',
    "harbor/berths.py": '''"""Who lies where."""

from datetime import datetime, timedelta

from harbor.tides import next_high_tide


def arrival(now: datetime) -> datetime:
    """Ships come in half an hour before high water."""
    return next_high_tide(now) - timedelta(minutes=30)
''',
    "harbor/board.py": '''"""What the board at the gate says."""

from datetime import datetime

from harbor.tides import next_high_tide


def line(now: datetime) -> str:
    return f"Next high water: {next_high_tide(now):%a %H:%M}"
''',
    "tests/__init__.py": "",
    "tests/test_tides.py": """import unittest
from datetime import datetime

from harbor.tides import next_high_tide


class TidesTest(unittest.TestCase):
    def test_morning(self) -> None:
        self.assertEqual(next_high_tide(datetime(2026, 5, 4, 4, 0)), datetime(2026, 5, 4, 5, 12))

    def test_late_evening(self) -> None:
        self.assertEqual(next_high_tide(datetime(2026, 5, 4, 22, 0)), datetime(2026, 5, 5, 5, 12))
""",
}

FIXED = {
    "path": "harbor/tides.py",
    "old_text": "            return tide\n    return tide\n",
    "new_text": (
        "            return tide\n"
        "    midnight = now.replace(hour=0, minute=0)\n"
        "    return next_high_tide(midnight + timedelta(days=1))\n"
    ),
}

ANSWER = f"""Fixed. After the last high tide of the day, `next_high_tide` returned that same tide again, which is in \
the past. Now it continues with the next day.

| caller | before, at 22:00 | now |
|---|---|---|
| `berths.arrival` | 17:08, five hours ago | 04:42 tomorrow |
| `board.line` | Mon 17:38 | Tue 05:12 |

Callers need no change. To see it for yourself:

```python
>>> next_high_tide(datetime(2026, 5, 4, 22, 0))
datetime.datetime(2026, 5, 5, 5, 12)
```

All tests pass (`{TESTS}`)."""


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, arguments)


def plan(done: int) -> CallTool:
    """The plan, with so many items done."""
    texts = ("See which test fails", "Find out who calls it", "Fix it", "Run all tests")
    states = ["completed" if at < done else "in_progress" if at == done else "pending" for at in range(len(texts))]
    return call("todos", items=[{"text": text, "state": state} for text, state in zip(texts, states, strict=True)])


def steps() -> list[HttpStep]:
    """The session of the pictures, request by request; those of the sub-agent are the third to the fifth."""
    return [
        [
            Think("The tests come first: what fails, and with which values?"),
            Say("I’ll run the tests first, then read the code they cover."),
            plan(0),
            call("bash", command=TESTS),
            Use(input_tokens=4_210, output_tokens=180, cost=0.0152),
        ],
        [
            Say("`test_late_evening` fails: after the last tide of the day it gets one in the past."),
            plan(1),
            call("view", path="harbor/tides.py"),
            call("agent", prompt="Who calls next_high_tide, and what do they do with its result?"),
            Use(input_tokens=5_020, output_tokens=240, cost=0.0186),
        ],
        [
            call("grep", pattern="next_high_tide", include="*.py"),
            Use(input_tokens=1_840, output_tokens=60, cost=0.0064),
        ],
        [
            call("view", path="harbor/berths.py"),
            call("view", path="harbor/board.py"),
            Use(input_tokens=2_310, output_tokens=70, cost=0.008),
        ],
        [
            Say(
                "Two callers: berths.arrival and board.line. Both expect a time in the future; neither checks for None."
            ),
            Use(input_tokens=2_820, output_tokens=95, cost=0.0099),
        ],
        [
            call("question", text="What should it return after the last high tide of the day?", choices=CHOICES),
            Use(input_tokens=5_930, output_tokens=110, cost=0.0194),
        ],
        [
            Say("The next day, then. One line is wrong: the last one."),
            plan(2),
            call("edit", **FIXED),
            Use(input_tokens=6_280, output_tokens=210, cost=0.022),
        ],
        [plan(4), call("bash", command=TESTS), Use(input_tokens=6_710, output_tokens=120, cost=0.0219)],
        [*words(ANSWER), Use(input_tokens=7_040, output_tokens=330, cost=0.0261)],
    ]


WARNED = "Warn on the board half an hour before high water."
_BOARD = [
    {"old_text": "import datetime\n", "new_text": "import datetime, timedelta\n"},
    {
        "old_text": "import next_high_tide\n\n\n",
        "new_text": "import next_high_tide\n\nWARNING = timedelta(minutes=30)\n\n\n",
    },
    {
        "old_text": '    return f"Next high water: {next_high_tide(now):%a %H:%M}"\n',
        "new_text": (
            "    tide = next_high_tide(now)\n"
            "    if tide - now <= WARNING:\n"
            '        return f"High water at {tide:%H:%M}: the lock closes"\n'
            '    return f"Next high water: {tide:%a %H:%M}"\n'
        ),
    },
]
_BERTHS = [
    {
        "old_text": "import datetime, timedelta\n\n",
        "new_text": "import datetime\n\nfrom harbor.board import WARNING\n",
    },
    {"old_text": "half an hour before high water", "new_text": "until the board warns"},
    {"old_text": "timedelta(minutes=30)", "new_text": "WARNING"},
]
_TEST = """import unittest
from datetime import datetime

from harbor.board import line


class BoardTest(unittest.TestCase):
    def test_it_warns(self) -> None:
        self.assertEqual(line(datetime(2026, 5, 4, 5, 0)), "High water at 05:12: the lock closes")
"""


def warning_steps() -> list[HttpStep]:
    """Three files change: what is reviewed."""
    return [
        [call("view", path="harbor/board.py"), call("view", path="harbor/berths.py"), Use(input_tokens=3_900)],
        [
            call("multiedit", path="harbor/board.py", edits=_BOARD),
            call("multiedit", path="harbor/berths.py", edits=_BERTHS),
            call("write", path="tests/test_board.py", content=_TEST),
            Use(input_tokens=4_600),
        ],
        [call("bash", command=TESTS), Use(input_tokens=5_100)],
        [
            *words("The board warns half an hour before high water, and a test covers it."),
            Use(input_tokens=5_400, output_tokens=60, cost=0.02),
        ],
    ]


PUBLISH = "Publish it, and throw away the old build."
DANGEROUS = 'git commit -qam "Warn before high water" && rm -rf build && git push --force origin main'


def publishing_steps() -> list[HttpStep]:
    """A command that no one should allow without reading it."""
    return [
        [
            Say("I’ll commit it, remove the old build and push."),
            call("bash", command=DANGEROUS),
            Use(input_tokens=5_800),
        ]
    ]


LAMPS = "Light the lamp at the right time."


def lamp_steps() -> list[HttpStep]:
    """A question in the other project."""
    choices = ("At sunset", "Half an hour before sunset", "When it is dark enough")
    return [[call("question", text="When should the lamp be lit?", choices=choices), Use(input_tokens=2_100)]]


LOGBOOK = "Read the logbook of 1987."


def logbook_steps() -> list[HttpStep]:
    """A run that fails."""
    return [[Refuse(400, message="The request was too large.")]]


RECORDED = "The tide test fails. Fix it."


def typed(text: str) -> list[Say | Delay]:
    """Word by word, as models speak."""
    return [item for word in words(text) for item in (word, Delay(0.05))]


def recorded_steps() -> list[HttpStep]:
    """What is recorded at the command line."""
    return [
        [*typed("I’ll run the tests, then read what fails."), call("bash", command=TESTS), Use(input_tokens=4_100)],
        [call("view", path="harbor/tides.py"), call("grep", pattern="next_high_tide"), Use(input_tokens=4_800)],
        [*typed("After the last tide of the day it returns that tide again."), call("edit", **FIXED)],
        [call("bash", command=TESTS), Use(input_tokens=5_900)],
        [
            *typed("It returned a tide in the past. Now it continues with the next day, and all tests pass."),
            Use(input_tokens=6_300, output_tokens=80, cost=0.02),
        ],
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A session of a day that is over: for the list of sessions and the statistics."""

    title: str
    days_ago: int
    tokens: int
    """Of each request."""
    runs: int = 1
    works_s: float = 0.5
    tools: tuple[CallTool, ...] = ()
    refused: bool = False
    canceled: bool = False

    def steps(self) -> list[HttpStep]:
        """Of each run."""
        if self.refused:
            return [[Refuse(400, message="The request was too large.")]]
        used = Use(input_tokens=self.tokens, output_tokens=self.tokens // 24, cost=self.tokens * 3.4e-6)
        last = [Delay(3600)] if self.canceled else words("Done; the tests pass.")
        looks: list[HttpStep] = [[tool, used] for tool in self.tools]
        return [*looks, [Delay(self.works_s), *last, used]]


_LOOK = (call("ls"), call("grep", pattern="def "), call("view", path="harbor/berths.py"))
_SHELL = (*_LOOK, call("bash", command="git log --oneline"), call("view", path="harbor/board.py"))

PAST = (
    Past(title="A board for the gate", days_ago=27, tokens=19_000, works_s=1.1, tools=_SHELL, runs=2),
    Past(title="Why is the crane idle on Sundays?", days_ago=26, tokens=9_000, works_s=0.9, tools=_LOOK),
    Past(title="Berths by draught", days_ago=24, tokens=24_000, works_s=1.2, tools=_SHELL, runs=3),
    Past(title="Review: pilots on call", days_ago=22, tokens=15_000, works_s=1.4, tools=_LOOK),
    Past(title="Import the harbor dues of 2025", days_ago=21, tokens=4_000, works_s=0.2, refused=True, runs=2),
    Past(title="Import the dues, month by month", days_ago=21, tokens=16_000, works_s=0.8, tools=_SHELL, runs=2),
    Past(title="Split the report by quay", days_ago=19, tokens=27_000, works_s=1.3, tools=_SHELL, runs=2),
    Past(title="Explain the tide tables", days_ago=17, tokens=8_000, works_s=0.6, tools=_LOOK),
    Past(title="Rename pier to berth everywhere", days_ago=15, tokens=12_000, works_s=0.7, tools=_LOOK, canceled=True),
    Past(title="Draughts in metres, not in feet", days_ago=14, tokens=17_000, works_s=1.0, tools=_SHELL, runs=3),
    Past(title="Who may open the lock?", days_ago=12, tokens=9_500, works_s=0.8, tools=_LOOK, runs=2),
    Past(title="The log rotates twice", days_ago=10, tokens=21_000, works_s=1.5, tools=_SHELL, runs=2),
    Past(title="Tests for the board", days_ago=8, tokens=13_000, works_s=0.9, tools=_SHELL),
    Past(title="Wind and waves on one page", days_ago=7, tokens=29_000, works_s=1.6, tools=_SHELL, runs=3),
    Past(title="Fog signals in the log", days_ago=5, tokens=25_000, works_s=1.4, tools=_SHELL, runs=2),
    Past(title="Python 3.14", days_ago=3, tokens=14_000, works_s=0.6, tools=_LOOK, canceled=True),
    Past(title="Python 3.14, step by step", days_ago=2, tokens=22_000, works_s=1.2, tools=_SHELL, runs=2),
    Past(title="Release notes for 1.4", days_ago=1, tokens=18_000, works_s=1.7, tools=_LOOK),
)

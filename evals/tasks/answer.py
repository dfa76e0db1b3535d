"""Questions: the answer must state the fact, and the repository must stay as it is."""

from pathlib import Path

from evals.judge import Judge
from evals.task import Answer, Edit, Kind, Task, commit

PORT = Task(
    name="answer-port",
    kind=Kind.ANSWER,
    quick=True,
    prompt="On which port does this server listen if nothing is configured? Do not change anything.",
    files={
        "server.py": """
            import os

            BASE = 8000
            OFFSET = 42


            def port():
                return int(os.environ.get("APP_PORT", BASE + OFFSET))
        """,
        "README.md": "# Server\n\nRun `python server.py`. Behind the proxy it is reached on port 443.\n",
    },
    check=lambda judge: judge.says("8042"),
    solution=(Answer("It listens on port 8042 (server.py:8: 8000 + 42)."),),
    mistakes={
        "the number in the README": (Answer("Port 443."),),
        "half of the sum": (Answer("It listens on 8000."),),
        "the file is changed": (Edit("server.py", "BASE + OFFSET", "8042"), Answer("Now it is 8042.")),
    },
)

FIND = Task(
    name="find-definition",
    kind=Kind.ANSWER,
    quick=True,
    prompt="Which file defines the function `parse_amount`? Answer with its path and nothing else.",
    files={
        "app/main.py": "from app.text.money import parse_amount\n\nprint(parse_amount('3.50'))\n",
        "app/__init__.py": "",
        "app/text/__init__.py": "",
        "app/text/dates.py": "def parse_date(text):\n    return text.split('-')\n",
        "app/text/money.py": "def parse_amount(text):\n    return round(float(text) * 100)\n",
        "app/amounts.py": "# parse_amount moved elsewhere.\n\n\ndef show_amount(cents):\n    return cents / 100\n",
    },
    check=lambda judge: judge.says(r"app/text/money\.py", never=(r"app/amounts\.py", r"app/main\.py")),
    solution=(Answer("`app/text/money.py` (line 1)."),),
    mistakes={"the file with a similar name": (Answer("It is defined in app/amounts.py."),)},
)


def _history(directory: Path) -> None:
    steps = (
        ("Add tax", "def price(net):\n    return net * 1.2\n"),
        ("Round prices", "def price(net):\n    return round(net * 1.2, 2)\n"),
        ("Tidy up", "def price(net):\n    return round(net * 1.02, 2)\n"),
        ("Describe price", 'def price(net):\n    """Net and tax."""\n    return round(net * 1.02, 2)\n'),
    )
    for message, content in steps:
        (directory / "price.py").write_text(content)
        commit(directory, message)


def _culprit(judge: Judge) -> None:
    commit_id = judge.git("log", "--format=%H", "--grep=Tidy up")
    judge.says(rf"(?:Tidy up|{commit_id[:7]}[0-9a-f]*)")
    subjects = judge.git("log", "--format=%s").splitlines()
    judge.require(not all(subject in judge.answer for subject in subjects), "the answer names every commit")


CULPRIT = Task(
    name="find-commit",
    kind=Kind.ANSWER,
    prompt=(
        "price() in price.py should add 20 % tax, and it once did. Which commit broke it? Give its hash and its "
        "message. Do not change anything."
    ),
    files={"price.py": "def price(net):\n    return net\n"},
    prepare=_history,
    check=_culprit,
    solution=(Answer('The commit "Tidy up" turned the factor 1.2 into 1.02.'),),
    mistakes={
        "the newest commit": (Answer('The last one, "Describe price".'),),
        "all of them": (Answer("First version, Add tax, Round prices, Tidy up, Describe price"),),
    },
)


def _callers(judge: Judge) -> None:
    lines = [line for line in judge.answer.splitlines() if "register" in line and "remind" in line]
    judge.says("register", "remind")
    judge.require(any("archive" not in line and "total" not in line for line in lines), "no line names just the two")


CALLERS = Task(
    name="find-callers",
    kind=Kind.ANSWER,
    prompt=(
        "Which functions call `send` of mailer.py? Answer with one line that has their names, separated by commas, and "
        "no other function. Do not change anything."
    ),
    files={
        "mailer.py": "def send(to, text):\n    print(to, text)\n",
        "accounts.py": """
            import mailer
            from queue_box import send


            def register(name):
                mailer.send(name, "Welcome!")


            def archive(name):
                send(name, "archived")
        """,
        "billing.py": """
            from mailer import send as deliver


            def remind(name, days):
                if days > 14:
                    deliver(name, "Please pay.")


            def total(bills):
                return sum(bills)
        """,
        "queue_box.py": "def send(name, what):\n    return (name, what)\n",
    },
    check=_callers,
    solution=(Answer("`register` in accounts.py and `remind` in billing.py."),),
    mistakes={
        "the alias is missed": (Answer("Only register in accounts.py."),),
        "another send is counted": (Answer("register and archive in accounts.py, and remind in billing.py."),),
    },
)

_REGIONS = ("north", "south", "east", "west")
_SALES = [
    (
        f"2026-{1 + number % 12:02}-{1 + number % 28:02}",
        _REGIONS[number % 4],
        (number * 37) % 91 + 20 * (number % 4 == 2),
    )
    for number in range(120)
]
_EAST = sum(amount for _, region, amount in _SALES if region == "east")

DATA = Task(
    name="answer-from-data",
    kind=Kind.ANSWER,
    prompt="Which region of sales.csv has the highest total amount, and how much is it? Do not change anything.",
    files={"sales.csv": "date,region,amount\n" + "".join(f"{day},{region},{sold}\n" for day, region, sold in _SALES)},
    check=lambda judge: judge.says("east", rf"{_EAST // 1000},?{_EAST % 1000:03}"),
    solution=(Answer(f"east, with a total of {_EAST:,}."),),
    mistakes={
        "a guess": (Answer("north, with 1,200."),),
        "the region without its total": (Answer("The region east is the highest."),),
    },
)


TASKS = (PORT, FIND, CULPRIT, CALLERS, DATA)

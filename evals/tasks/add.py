"""Tasks that add something to a program."""

from evals.judge import Judge
from evals.task import Edit, Kind, Task, Write


def _flag(judge: Judge) -> None:
    judge.expect("python", "greet.py", "Ada", out="Hello, Ada!")
    judge.expect("python", "greet.py", "--upper", "Ada", out="HELLO, ADA!")
    judge.expect("python", "greet.py", "ben", "--upper", out="HELLO, BEN!")


FLAG = Task(
    name="add-flag",
    kind=Kind.ADD,
    quick=True,
    prompt="Add an option --upper to greet.py. With it, the whole greeting is printed in upper case.",
    files={
        "greet.py": """
            import argparse

            parser = argparse.ArgumentParser()
            parser.add_argument("name")
            arguments = parser.parse_args()

            print(f"Hello, {arguments.name}!")
        """
    },
    check=_flag,
    solution=(
        Edit("greet.py", "arguments = ", 'parser.add_argument("--upper", action="store_true")\narguments = '),
        Edit(
            "greet.py",
            'print(f"Hello, {arguments.name}!")',
            'greeting = f"Hello, {arguments.name}!"\nprint(greeting.upper() if arguments.upper else greeting)',
        ),
    ),
    mistakes={
        "it is accepted and not used": (
            Edit("greet.py", "arguments = ", 'parser.add_argument("--upper", action="store_true")\narguments = '),
        ),
        "it wants a value": (
            Edit("greet.py", "arguments = ", 'parser.add_argument("--upper")\narguments = '),
            Edit(
                "greet.py",
                'print(f"Hello, {arguments.name}!")',
                'greeting = f"Hello, {arguments.name}!"\nprint(greeting.upper() if arguments.upper else greeting)',
            ),
        ),
    },
)


def _median(judge: Judge) -> None:
    judge.python("""
        from numbers_list import largest, median
        assert largest([1, 3, 2]) == 3
        assert median([3, 1, 2]) == 2
        assert median([4, 1, 3, 2]) == 2.5, median([4, 1, 3, 2])
        assert median([7]) == 7
        given = [3, 1, 2]
        median(given)
        assert given == [3, 1, 2], "median changed its argument"
    """)


MEDIAN = Task(
    name="add-median",
    kind=Kind.ADD,
    quick=True,
    prompt=(
        "Add a function median(numbers) to numbers_list.py. It returns the middle number of the sorted numbers, or the "
        "mean of the two middle ones if their count is even. It must not change the list it is given."
    ),
    files={
        "numbers_list.py": '''
            def largest(numbers):
                """The largest of the numbers."""
                return max(numbers)
        '''
    },
    check=_median,
    solution=(
        Edit(
            "numbers_list.py",
            "    return max(numbers)\n",
            "    return max(numbers)\n\n\n"
            "def median(numbers):\n"
            '    """The middle of the numbers."""\n'
            "    ordered = sorted(numbers)\n"
            "    middle = len(ordered) // 2\n"
            "    if len(ordered) % 2:\n"
            "        return ordered[middle]\n"
            "    return (ordered[middle - 1] + ordered[middle]) / 2\n",
        ),
    ),
    mistakes={
        "an even count is wrong": (
            Edit(
                "numbers_list.py",
                "    return max(numbers)\n",
                "    return max(numbers)\n\n\ndef median(numbers):\n    return sorted(numbers)[len(numbers) // 2]\n",
            ),
        ),
        "the list is sorted in place": (
            Edit(
                "numbers_list.py",
                "    return max(numbers)\n",
                "    return max(numbers)\n\n\ndef median(numbers):\n    numbers.sort()\n    half = len(numbers) // 2\n"
                "    return (numbers[half] + numbers[~half]) / 2\n",
            ),
        ),
    },
)

TODO = """
    import json
    import sys
    from pathlib import Path

    FILE = Path("todo.json")


    def load():
        return json.loads(FILE.read_text()) if FILE.exists() else []


    def save(items):
        FILE.write_text(json.dumps(items))


    def add(text):
        save([*load(), {"text": text, "done": False}])


    def show():
        for number, item in enumerate(load(), 1):
            mark = "x" if item["done"] else " "
            print(f"{number}. [{mark}] {item['text']}")


    def main(words):
        match words:
            case ["add", text]:
                add(text)
            case ["list"]:
                show()
            case _:
                sys.exit("usage: todo.py add TEXT | list")


    if __name__ == "__main__":
        main(sys.argv[1:])
"""


def _subcommand(judge: Judge) -> None:
    for text in ("tea", "milk", "bread"):
        judge.expect("python", "todo.py", "add", text, out="")
    judge.run("python", "todo.py", "done", "2")
    judge.expect("python", "todo.py", "list", out="1. [ ] tea\n2. [x] milk\n3. [ ] bread")
    for number in ("4", "0"):
        ran = judge.run("python", "todo.py", "done", number)
        judge.require(ran.code != 0, f"`todo.py done {number}` succeeds, and there is no such item")
        judge.require("Traceback" not in ran.err, f"`todo.py done {number}` shows a traceback")
    judge.expect("python", "todo.py", "list", out="1. [ ] tea\n2. [x] milk\n3. [ ] bread")


SUBCOMMAND = Task(
    name="add-subcommand",
    kind=Kind.ADD,
    prompt=(
        "Add a command `done NUMBER` to todo.py that marks the item with this number (as `list` shows it) as done. If "
        "there is no such item, print an error message to standard error and exit with a code that is not 0."
    ),
    files={"todo.py": TODO},
    check=_subcommand,
    solution=(
        Edit(
            "todo.py",
            "def show():",
            "def done(number):\n"
            "    items = load()\n"
            "    if not 1 <= number <= len(items):\n"
            '        sys.exit(f"no item {number}")\n'
            '    items[number - 1]["done"] = True\n'
            "    save(items)\n\n\n"
            "def show():",
        ),
        Edit(
            "todo.py",
            'case ["list"]:',
            'case ["done", number] if number.isdigit():\n            done(int(number))\n        case ["list"]:',
        ),
    ),
    mistakes={
        "0 marks the last item": (
            Edit(
                "todo.py",
                "def show():",
                "def done(number):\n"
                "    items = load()\n"
                "    if number > len(items):\n"
                '        sys.exit(f"no item {number}")\n'
                '    items[number - 1]["done"] = True\n'
                "    save(items)\n\n\n"
                "def show():",
            ),
            Edit(
                "todo.py",
                'case ["list"]:',
                'case ["done", number]:\n            done(int(number))\n        case ["list"]:',
            ),
        ),
    },
)


def _errors(judge: Judge) -> None:
    judge.put("three.txt", "one two\nthree\n")
    judge.expect("python", "count.py", "three.txt", out="3")
    for file in ("missing.txt", "."):
        ran = judge.run("python", "count.py", file)
        judge.require(ran.code == 2, f"the exit code for {file} is {ran.code}, not 2")
        judge.require("Traceback" not in ran.err, f"a traceback is shown for {file}")
        judge.require(file in ran.err and not ran.out.strip(), f"standard error does not name {file}")


ERRORS = Task(
    name="add-error-message",
    kind=Kind.ADD,
    prompt=(
        "If the file cannot be read (it is missing, or a directory), count.py shows a traceback. It should print one "
        "line to standard error that names the file, and exit with code 2."
    ),
    files={
        "count.py": """
            import sys

            with open(sys.argv[1]) as file:
                print(len(file.read().split()))
        """
    },
    check=_errors,
    solution=(
        Write(
            "count.py",
            """
            import sys

            try:
                with open(sys.argv[1]) as file:
                    text = file.read()
            except OSError as error:
                print(f"count.py: {sys.argv[1]}: {error.strerror}", file=sys.stderr)
                sys.exit(2)
            print(len(text.split()))
            """,
        ),
    ),
    mistakes={
        "only a missing file is handled": (
            Write(
                "count.py",
                """
                import sys

                try:
                    with open(sys.argv[1]) as file:
                        print(len(file.read().split()))
                except FileNotFoundError:
                    print(f"no file {sys.argv[1]}", file=sys.stderr)
                    sys.exit(2)
                """,
            ),
        ),
        "the message goes to standard output": (
            Write(
                "count.py",
                """
                import sys

                try:
                    with open(sys.argv[1]) as file:
                        print(len(file.read().split()))
                except OSError:
                    print(f"cannot read {sys.argv[1]}")
                    sys.exit(2)
                """,
            ),
        ),
    },
)


def _validation(judge: Judge) -> None:
    judge.python("""
        from account import Account
        account = Account(100)
        account.deposit(50)
        account.withdraw(30)
        assert account.balance == 120
        for name, amount in (("deposit", -1), ("deposit", 0), ("withdraw", -1), ("withdraw", 121)):
            try:
                getattr(account, name)(amount)
            except ValueError:
                assert account.balance == 120, "the balance changed although the amount was refused"
            else:
                raise AssertionError(f"{name}({amount}) is accepted")
        account.withdraw(120)
        assert account.balance == 0
    """)


VALIDATION = Task(
    name="add-validation",
    kind=Kind.ADD,
    prompt=(
        "Account accepts nonsense. deposit and withdraw must raise a ValueError for an amount that is 0 or negative, "
        "and withdraw also for more than the balance. The balance must then stay as it was."
    ),
    files={
        "account.py": """
            class Account:
                def __init__(self, balance=0):
                    self.balance = balance

                def deposit(self, amount):
                    self.balance += amount

                def withdraw(self, amount):
                    self.balance -= amount
        """
    },
    check=_validation,
    solution=(
        Write(
            "account.py",
            """
            class Account:
                def __init__(self, balance=0):
                    self.balance = balance

                def deposit(self, amount):
                    self._check(amount)
                    self.balance += amount

                def withdraw(self, amount):
                    self._check(amount)
                    if amount > self.balance:
                        raise ValueError("more than the balance")
                    self.balance -= amount

                @staticmethod
                def _check(amount):
                    if amount <= 0:
                        raise ValueError("the amount must be positive")
            """,
        ),
    ),
    mistakes={
        "checked too late": (
            Edit(
                "account.py",
                "self.balance -= amount",
                "self.balance -= amount\n        if amount <= 0 or self.balance < 0:\n            raise ValueError",
            ),
            Edit(
                "account.py",
                "self.balance += amount",
                "if amount <= 0:\n            raise ValueError\n        self.balance += amount",
            ),
        ),
        "0 is accepted": (
            Edit(
                "account.py",
                "self.balance -= amount",
                "if amount < 0 or amount > self.balance:\n            raise ValueError\n        self.balance -= amount",
            ),
            Edit(
                "account.py",
                "self.balance += amount",
                "if amount < 0:\n            raise ValueError\n        self.balance += amount",
            ),
        ),
    },
)


def _cache(judge: Judge) -> None:
    judge.python("""
        import prices
        asked = []
        prices.ask_server = lambda name: asked.append(name) or len(name)
        assert [prices.price(name) for name in ("tea", "milk", "tea", "tea")] == [3, 4, 3, 3]
        assert asked == ["tea", "milk"], asked
        prices.forget()
        assert prices.price("tea") == 3 and asked == ["tea", "milk", "tea"], "forget() does not forget"
    """)


CACHE = Task(
    name="add-cache",
    kind=Kind.ADD,
    prompt=(
        "price() in prices.py asks the server every time. It should ask once per name and remember the answer. Also "
        "add a function forget() to the module that forgets all remembered prices."
    ),
    files={
        "prices.py": """
            import time


            def ask_server(name):
                time.sleep(1)
                return len(name) * 100


            def price(name):
                return ask_server(name)
        """
    },
    check=_cache,
    solution=(
        Edit(
            "prices.py",
            "def price(name):\n    return ask_server(name)\n",
            "_known = {}\n\n\n"
            "def price(name):\n"
            "    if name not in _known:\n"
            "        _known[name] = ask_server(name)\n"
            "    return _known[name]\n\n\n"
            "def forget():\n"
            "    _known.clear()\n",
        ),
    ),
    mistakes={
        "nothing can be forgotten": (
            Edit("prices.py", "import time", "import time\nfrom functools import cache"),
            Edit("prices.py", "def price(", "@cache\ndef price("),
        ),
        "forget makes a new local": (
            Edit(
                "prices.py",
                "def price(name):\n    return ask_server(name)\n",
                "_known = {}\n\n\n"
                "def price(name):\n"
                "    if name not in _known:\n"
                "        _known[name] = ask_server(name)\n"
                "    return _known[name]\n\n\n"
                "def forget():\n"
                "    _known = {}\n",
            ),
        ),
    },
)


def _hints(judge: Judge) -> None:
    judge.python("""
        from typing import get_args, get_type_hints
        import text_tools
        assert get_type_hints(text_tools.shorten) == {"text": str, "limit": int, "return": str}
        counted = get_type_hints(text_tools.count_words)
        assert counted["text"] is str and get_args(counted["return"]) == (str, int), counted
        found = get_type_hints(text_tools.find)
        assert get_args(found["words"]) == (str,) and found["letter"] is str, found
        assert found["return"] == (str | None), found
        assert text_tools.shorten("longboat", 4) == "long…" and text_tools.shorten("sea") == "sea"
        assert text_tools.count_words("a b a") == {"a": 2, "b": 1}
        assert text_tools.find(["tea", "milk"], "m") == "milk" and text_tools.find([], "m") is None
    """)


HINTS = Task(
    name="add-type-hints",
    kind=Kind.ADD,
    prompt=(
        "Add complete type hints to the three functions in text_tools.py, precise about what is in lists and "
        "dictionaries and about None. Change nothing else. The project uses Python 3.11."
    ),
    files={
        "text_tools.py": """
            def shorten(text, limit=20):
                return text if len(text) <= limit else text[:limit] + "…"


            def count_words(text):
                counts = {}
                for word in text.split():
                    counts[word] = counts.get(word, 0) + 1
                return counts


            def find(words, letter):
                for word in words:
                    if word.startswith(letter):
                        return word
                return None
        """
    },
    check=_hints,
    solution=(
        Edit("text_tools.py", "shorten(text, limit=20)", "shorten(text: str, limit: int = 20) -> str"),
        Edit("text_tools.py", "count_words(text)", "count_words(text: str) -> dict[str, int]"),
        Edit("text_tools.py", "counts = {}", "counts: dict[str, int] = {}"),
        Edit("text_tools.py", "find(words, letter)", "find(words: list[str], letter: str) -> str | None"),
    ),
    mistakes={
        "None and the contents are forgotten": (
            Edit("text_tools.py", "shorten(text, limit=20)", "shorten(text: str, limit: int = 20) -> str"),
            Edit("text_tools.py", "count_words(text)", "count_words(text: str) -> dict"),
            Edit("text_tools.py", "find(words, letter)", "find(words: list, letter: str) -> str"),
        ),
        "a name is not imported": (
            Edit("text_tools.py", "shorten(text, limit=20)", "shorten(text: str, limit: int = 20) -> str"),
            Edit("text_tools.py", "count_words(text)", "count_words(text: str) -> Dict[str, int]"),
            Edit("text_tools.py", "find(words, letter)", "find(words: list[str], letter: str) -> Optional[str]"),
        ),
    },
)


def _json_output(judge: Judge) -> None:
    judge.expect("python", "disk.py", "a.txt", "b.txt", out="a.txt  3\nb.txt  5\ntotal  8")
    ran = judge.run("python", "disk.py", "--json", "a.txt", "b.txt")
    judge.put("out.json", ran.out)
    judge.python("""
        import json
        assert json.load(open("out.json")) == {"files": {"a.txt": 3, "b.txt": 5}, "total": 8}
    """)


JSON_OUTPUT = Task(
    name="add-json-output",
    kind=Kind.ADD,
    prompt=(
        'Add an option --json to disk.py. With it, the program prints one JSON object instead of the table: {"files": '
        '{"a.txt": 3, "b.txt": 5}, "total": 8}. Without it, the output must stay exactly as it is.'
    ),
    files={
        "disk.py": """
            import argparse
            import os

            parser = argparse.ArgumentParser()
            parser.add_argument("files", nargs="+")
            arguments = parser.parse_args()

            total = 0
            for file in arguments.files:
                size = os.path.getsize(file)
                total += size
                print(f"{file}  {size}")
            print(f"total  {total}")
        """,
        "a.txt": "abc",
        "b.txt": "hello",
    },
    check=_json_output,
    solution=(
        Write(
            "disk.py",
            """
            import argparse
            import json
            import os

            parser = argparse.ArgumentParser()
            parser.add_argument("files", nargs="+")
            parser.add_argument("--json", action="store_true")
            arguments = parser.parse_args()

            sizes = {file: os.path.getsize(file) for file in arguments.files}
            total = sum(sizes.values())
            if arguments.json:
                print(json.dumps({"files": sizes, "total": total}))
            else:
                for file, size in sizes.items():
                    print(f"{file}  {size}")
                print(f"total  {total}")
            """,
        ),
    ),
    mistakes={
        "the table is printed as well": (
            Edit("disk.py", "import os", "import json\nimport os"),
            Edit("disk.py", 'nargs="+")', 'nargs="+")\nparser.add_argument("--json", action="store_true")'),
            Edit(
                "disk.py",
                'print(f"total  {total}")',
                "if arguments.json:\n    sizes = {file: os.path.getsize(file) for file in arguments.files}\n"
                '    print(json.dumps({"files": sizes, "total": total}))\nelse:\n    print(f"total  {total}")',
            ),
        ),
    },
)

TASKS = (FLAG, MEDIAN, SUBCOMMAND, ERRORS, VALIDATION, CACHE, HINTS, JSON_OUTPUT)

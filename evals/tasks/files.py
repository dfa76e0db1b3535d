"""Tasks about configuration, documentation, scripts and data."""

import csv

from evals.judge import Judge
from evals.task import Edit, Kind, Shell, Task, Write


def _config(judge: Judge) -> None:
    judge.python("""
        import json
        assert json.load(open("config.json")) == {
            "name": "harbor", "server": {"host": "127.0.0.1", "port": 9000}, "debug": False, "tags": ["a", "b"]
        }
    """)


CONFIG = Task(
    name="config-json",
    kind=Kind.FILES,
    quick=True,
    prompt="In config.json, change the server's port to 9000 and turn debug off. Leave everything else as it is.",
    files={
        "config.json": """
            {
              "name": "harbor",
              "server": {
                "host": "127.0.0.1",
                "port": 8080
              },
              "debug": true,
              "tags": ["a", "b"]
            }
        """
    },
    check=_config,
    solution=(Edit("config.json", "8080", "9000"), Edit("config.json", "true", "false")),
    mistakes={
        "one of two": (Edit("config.json", "8080", "9000"),),
        "no longer JSON": (Edit("config.json", "8080", "9000,"), Edit("config.json", "true", "false")),
        "the port as a text": (Edit("config.json", "8080", '"9000"'), Edit("config.json", "true", "false")),
    },
)


def _project(judge: Judge) -> None:
    judge.python("""
        import tomllib
        project = tomllib.load(open("pyproject.toml", "rb"))
        assert project["project"]["version"] == "1.3.0", project["project"]["version"]
        assert project["project"]["dependencies"] == ["httpx>=0.27", "rich>=13"], project["project"]["dependencies"]
        assert project["project"]["name"] == "harbor" and project["tool"] == {"ruff": {"line-length": 100}}
    """)


PROJECT = Task(
    name="config-toml",
    kind=Kind.FILES,
    quick=True,
    prompt='In pyproject.toml, set the version to 1.3.0 and add the dependency "rich>=13" after the one that is there.',
    files={
        "pyproject.toml": """
            [project]
            name = "harbor"
            version = "1.2.9"
            dependencies = ["httpx>=0.27"]

            [tool.ruff]
            line-length = 100
        """
    },
    check=_project,
    solution=(
        Edit("pyproject.toml", "1.2.9", "1.3.0"),
        Edit("pyproject.toml", '["httpx>=0.27"]', '["httpx>=0.27", "rich>=13"]'),
    ),
    mistakes={
        "the dependency is replaced": (
            Edit("pyproject.toml", "1.2.9", "1.3.0"),
            Edit("pyproject.toml", "httpx>=0.27", "rich>=13"),
        ),
        "in the wrong table": (
            Edit("pyproject.toml", "1.2.9", "1.3.0"),
            Edit("pyproject.toml", "line-length = 100", 'line-length = 100\ndependencies = ["rich>=13"]'),
        ),
    },
)


def _script(judge: Judge) -> None:
    judge.put("tree/a.txt", "1\n2\n3\n")
    judge.put("tree/my notes.txt", "1\n2\n")
    judge.put("tree/deep/er/b.txt", "1\n")
    judge.put("tree/c.md", "1\n2\n3\n4\n5\n")
    judge.expect("bash", "count.sh", "tree", out="6")
    judge.put("empty/c.md", "1\n")
    judge.expect("bash", "count.sh", "empty", out="0")


SCRIPT = Task(
    name="write-script",
    kind=Kind.FILES,
    quick=True,
    prompt=(
        "Write a bash script count.sh. `bash count.sh DIR` prints one number: how many lines all .txt files in DIR and "
        "in its subdirectories have together. File names may contain spaces; if there is no .txt file it prints 0."
    ),
    files={"README.md": "# Scripts\n"},
    check=_script,
    solution=(
        Write(
            "count.sh",
            """
            #!/usr/bin/env bash
            set -euo pipefail
            find "$1" -type f -name '*.txt' -exec cat {} + | wc -l
            """,
        ),
    ),
    mistakes={
        "spaces in names": (Write("count.sh", "cat $(find $1 -name '*.txt') /dev/null | wc -l\n"),),
        "no subdirectories": (Write("count.sh", 'cat "$1"/*.txt 2>/dev/null | wc -l\n'),),
    },
)


def _quoting(judge: Judge) -> None:
    judge.put("in/a b.txt", "one")
    judge.put("in/c.txt", "two")
    judge.put("in/-n.txt", "three")
    ran = judge.run("bash", "backup.sh", "in", "my backup")
    judge.require(ran.code == 0, f"backup.sh ended with code {ran.code}")
    for name, content in (("a b.txt", "one"), ("c.txt", "two"), ("-n.txt", "three")):
        judge.require(judge.read(f"my backup/{name}.bak") == content, f"{name} was not copied")
    judge.require(len(list((judge.directory / "my backup").iterdir())) == 3, "more files than there should be")
    judge.require(judge.run("bash", "backup.sh", "missing", "x").code != 0, "a missing directory is no error")


QUOTING = Task(
    name="fix-script",
    kind=Kind.FILES,
    prompt=(
        "`bash backup.sh SOURCE TARGET` copies every .txt file of SOURCE to TARGET as NAME.bak. It breaks if a path "
        "has a space in it. Fix that. If SOURCE is no directory, it should end with an exit code other than 0."
    ),
    files={
        "backup.sh": """
            #!/usr/bin/env bash
            mkdir -p $2
            for file in $(ls $1/*.txt); do
                cp $file $2/$(basename $file).bak
            done
        """
    },
    check=_quoting,
    solution=(
        Write(
            "backup.sh",
            """
            #!/usr/bin/env bash
            set -euo pipefail
            [ -d "$1" ] || { echo "backup.sh: $1 is no directory" >&2; exit 1; }
            mkdir -p "$2"
            for file in "$1"/*.txt; do
                [ -e "$file" ] || continue
                cp -- "$file" "$2/$(basename -- "$file").bak"
            done
            """,
        ),
    ),
    mistakes={
        "only the target is quoted": (
            Edit("backup.sh", "mkdir -p $2", 'mkdir -p "$2"'),
            Edit("backup.sh", "cp $file $2/$(basename $file).bak", 'cp "$file" "$2/$(basename "$file").bak"'),
        ),
        "a missing directory is no error": (
            Write(
                "backup.sh",
                """
                mkdir -p "$2"
                for file in "$1"/*.txt; do
                    [ -e "$file" ] || continue
                    cp -- "$file" "$2/$(basename -- "$file").bak"
                done
                """,
            ),
        ),
    },
)


def _duplicates(judge: Judge) -> None:
    rows = list(csv.reader(judge.read("clean.csv").splitlines()))
    expected = [
        ["email", "name"],
        ["ada@example.org", "Ada"],
        ["ben@example.org", "Ben, the second"],
        ["eve@example.org", "Eve"],
    ]
    judge.require(rows == expected, f"clean.csv has {rows}")
    judge.require("Ada Again" in judge.read("people.csv"), "people.csv was changed")


DUPLICATES = Task(
    name="csv-duplicates",
    kind=Kind.FILES,
    prompt=(
        "people.csv has people more than once. Write clean.csv: the same header, one line for each e-mail address "
        "(compared without regard to case; the first line wins), sorted by address, addresses in lower case. Leave "
        "people.csv as it is."
    ),
    files={
        "people.csv": """
            email,name
            eve@example.org,Eve
            Ada@example.org,Ada
            ben@example.org,"Ben, the second"
            ada@example.org,Ada Again
            EVE@EXAMPLE.ORG,Eve
        """
    },
    check=_duplicates,
    solution=(
        Shell(
            "python3 - <<'END'\n"
            "import csv\n"
            "rows = list(csv.reader(open('people.csv', newline='')))\n"
            "seen = {}\n"
            "for email, name in rows[1:]:\n"
            "    seen.setdefault(email.lower(), name)\n"
            "with open('clean.csv', 'w', newline='') as file:\n"
            "    writer = csv.writer(file, lineterminator='\\n')\n"
            "    writer.writerow(rows[0])\n"
            "    writer.writerows(sorted(seen.items()))\n"
            "END"
        ),
    ),
    mistakes={
        "case counts": (
            Write(
                "clean.csv",
                'email,name\nAda@example.org,Ada\nada@example.org,Ada Again\nben@example.org,"Ben, the second"\n',
            ),
        ),
        "the comma splits a name": (
            Write("clean.csv", "email,name\nada@example.org,Ada\nben@example.org,Ben\neve@example.org,Eve\n"),
        ),
    },
)


def _migrate(judge: Judge) -> None:
    judge.python("""
        import json
        from pathlib import Path
        expected = {
            "ada.json": {"name": "Ada", "contact": {"mail": "ada@example.org", "phone": "1"}, "notes": ["mail her"]},
            "ben.json": {"name": "Ben", "contact": {"phone": "2"}, "notes": []},
            "eve.json": {"name": "Eve", "contact": {"mail": "eve@example.org"}, "notes": []},
        }
        found = {file.name: json.loads(file.read_text()) for file in Path("people").iterdir()}
        assert found == expected, found
    """)


MIGRATE = Task(
    name="json-migrate",
    kind=Kind.FILES,
    prompt=(
        'In every file of people/, move "mail" and "phone" into a new object "contact" (only those that are there). '
        "Everything else stays."
    ),
    files={
        "people/ada.json": '{"name": "Ada", "mail": "ada@example.org", "phone": "1", "notes": ["mail her"]}\n',
        "people/ben.json": '{"name": "Ben", "phone": "2", "notes": []}\n',
        "people/eve.json": '{"name": "Eve", "mail": "eve@example.org", "notes": []}\n',
    },
    check=_migrate,
    solution=(
        Edit(
            "people/ada.json",
            '"mail": "ada@example.org", "phone": "1"',
            '"contact": {"mail": "ada@example.org", "phone": "1"}',
        ),
        Edit("people/ben.json", '"phone": "2"', '"contact": {"phone": "2"}'),
        Edit("people/eve.json", '"mail": "eve@example.org"', '"contact": {"mail": "eve@example.org"}'),
    ),
    mistakes={
        "missing values become null": (
            Edit(
                "people/ada.json",
                '"mail": "ada@example.org", "phone": "1"',
                '"contact": {"mail": "ada@example.org", "phone": "1"}',
            ),
            Edit("people/ben.json", '"phone": "2"', '"contact": {"mail": null, "phone": "2"}'),
            Edit(
                "people/eve.json", '"mail": "eve@example.org"', '"contact": {"mail": "eve@example.org", "phone": null}'
            ),
        ),
        "one file is forgotten": (
            Edit(
                "people/ada.json",
                '"mail": "ada@example.org", "phone": "1"',
                '"contact": {"mail": "ada@example.org", "phone": "1"}',
            ),
            Edit("people/ben.json", '"phone": "2"', '"contact": {"phone": "2"}'),
        ),
    },
)


def _readme(judge: Judge) -> None:
    judge.python("""
        import re
        text = open("README.md").read()
        examples = re.findall(r"```python\\n(.*?)```", text, re.S)
        assert len(examples) == 2, "two examples"
        shown = []
        for example in examples:
            exec(example, {"print": lambda *values: shown.append(" ".join(map(str, values)))})
        assert shown == ["3.0 km", "1.5 km"], shown
        assert "# Distances" in text and "kilometers" in text
        from distances import convert, show
        assert show(convert(3000, to="km")) == "3.0 km"
    """)


README = Task(
    name="docs-examples",
    kind=Kind.FILES,
    prompt=(
        "The two examples in README.md no longer work: distances.py has changed since. Correct the examples so that "
        "they run and print the same distances as the text says. Do not change distances.py."
    ),
    files={
        "distances.py": '''
            UNITS = {"m": 1, "km": 1000}


            def convert(meters, *, to):
                """A distance as (number, unit)."""
                return meters / UNITS[to], to


            def show(distance):
                number, unit = distance
                return f"{number:.1f} {unit}"
        ''',
        "README.md": """
            # Distances

            Three thousand meters in kilometers, which is 3.0 km:

            ```python
            from distances import convert, show

            print(show(convert(3000, "kilometers")))
            ```

            And 1.5 km:

            ```python
            from distances import convert, show_distance

            print(show_distance(convert(1500, to="km")))
            ```
        """,
    },
    check=_readme,
    solution=(
        Edit("README.md", '"kilometers"', 'to="km"'),
        Edit("README.md", "show_distance", "show"),
    ),
    mistakes={
        "only one is corrected": (Edit("README.md", '"kilometers"', 'to="km"'),),
        "the examples print a text": (
            Edit("README.md", 'print(show(convert(3000, "kilometers")))', 'print("3.0 km")'),
            Edit("README.md", "show_distance(convert(1500", "show(convert(15000"),
            Edit("README.md", "import convert, show_distance", "import convert, show"),
        ),
    },
)


def _makefile(judge: Judge) -> None:
    judge.put("build/a.o", "x")
    judge.put("b.o", "x")
    judge.put("keep.txt", "x")
    ran = judge.run("make", "clean")
    judge.require(ran.code == 0, f"make clean: {ran.err.strip()[-200:]}")
    judge.require(not (judge.directory / "build").exists(), "build/ is still there")
    judge.require(not judge.exists("b.o"), "b.o is still there")
    judge.require(judge.exists("keep.txt") and judge.exists("main.c"), "too much was removed")
    judge.require(judge.run("make", "clean").code == 0, "make clean fails if there is nothing to remove")
    judge.put("clean", "a file of this name")
    judge.put("b.o", "x")
    judge.run("make", "clean")
    judge.require(not judge.exists("b.o"), "a file named clean stops it")
    judge.expect("make", "-s", "hello", out="hello")


MAKEFILE = Task(
    name="config-make",
    kind=Kind.FILES,
    prompt=(
        "Add a target `clean` to the Makefile that removes the directory build and all .o files in this directory. It "
        "must work if they are not there, and also if a file named clean exists."
    ),
    files={
        "Makefile": "hello:\n\t@echo hello\n",
        "main.c": "int main(void) { return 0; }\n",
    },
    check=_makefile,
    solution=(Write("Makefile", ".PHONY: hello clean\n\nhello:\n\t@echo hello\n\nclean:\n\trm -rf build *.o\n"),),
    mistakes={
        "not phony": (Write("Makefile", "hello:\n\t@echo hello\n\nclean:\n\trm -rf build *.o\n"),),
        "spaces instead of a tab": (
            Write("Makefile", ".PHONY: clean\n\nhello:\n\t@echo hello\n\nclean:\n    rm -rf build *.o\n"),
        ),
    },
)


def _query(judge: Judge) -> None:
    judge.python("""
        import sqlite3
        for rows, expected in (
            ([("Ada", 5), ("Ada", 7), ("Ben", 20), ("Eve", 3)], [("Ben", 20), ("Ada", 12), ("Eve", 3)]),
            ([("Flo", 1), ("Eve", 1), ("Ada", 2), ("Ben", 9), ("Ben", 1)], [("Ben", 10), ("Ada", 2), ("Eve", 1)]),
        ):
            base = sqlite3.connect(":memory:")
            base.executescript(open("schema.sql").read())
            for number, name in enumerate(sorted({name for name, _ in rows})):
                base.execute("INSERT INTO customers (id, name) VALUES (?, ?)", (number, name))
            base.execute("INSERT INTO customers (id, name) VALUES (99, 'Nobody')")
            for name, amount in rows:
                base.execute("INSERT INTO orders SELECT id, ? FROM customers WHERE name = ?", (amount, name))
            found = base.execute(open("top.sql").read()).fetchall()
            assert found == expected, found
    """)


QUERY = Task(
    name="write-query",
    kind=Kind.FILES,
    prompt=(
        "Write top.sql: one SQLite query on the tables of schema.sql. It returns the names of the three customers with "
        "the highest total amount of all their orders, and that total; highest first, equal totals by name."
    ),
    files={
        "schema.sql": """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE orders (customer_id INTEGER NOT NULL REFERENCES customers, amount INTEGER NOT NULL);
        """
    },
    check=_query,
    solution=(
        Write(
            "top.sql",
            """
            SELECT customers.name, sum(orders.amount) AS total
            FROM customers JOIN orders ON orders.customer_id = customers.id
            GROUP BY customers.id
            ORDER BY total DESC, customers.name
            LIMIT 3
            """,
        ),
    ),
    mistakes={
        "single orders, no totals": (
            Write(
                "top.sql",
                "SELECT name, amount FROM customers JOIN orders ON customer_id = id ORDER BY amount DESC LIMIT 3\n",
            ),
        ),
        "equal totals in any order": (
            Write(
                "top.sql",
                "SELECT name, sum(amount) FROM orders JOIN customers ON customer_id = id GROUP BY id "
                "ORDER BY 2 DESC, id DESC LIMIT 3\n",
            ),
        ),
    },
)

TASKS = (CONFIG, PROJECT, SCRIPT, QUOTING, DUPLICATES, MIGRATE, README, MAKEFILE, QUERY)

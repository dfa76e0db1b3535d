"""Tasks that change the form and keep the behavior."""

from evals.judge import Judge
from evals.task import Edit, Kind, Shell, Task, Write


def _rename(judge: Judge) -> None:
    old = judge.run("git", "grep", "--untracked", "--word-regexp", "calc_area").out
    judge.require(old == "", f"the old name is still there: {old[:100]}")
    judge.python("""
        import geometry
        from geometry.report import describe, recalc_areas
        assert geometry.area_of(2, 3) == 6 and geometry.__all__ == ["area_of"]
        assert describe(2, 3) == "area: 6"
        assert recalc_areas([(1, 2), (3, 4)]) == [2, 12]
    """)
    judge.require("area_of(2, 3)" in judge.read("README.md"), "README.md does not have the new name")
    judge.require(judge.tests_pass("test_geometry.py"), "the tests fail")


_RENAMED = tuple(
    Edit(path, "calc_area(", "area_of(") for path in ("geometry/shapes.py", "test_geometry.py", "README.md")
)
_IMPORTED = tuple(
    Edit(path, "import calc_area", "import area_of")
    for path in ("geometry/__init__.py", "geometry/report.py", "test_geometry.py")
)
_IN_REPORT = (
    Edit("geometry/report.py", "{calc_area(", "{area_of("),
    Edit("geometry/report.py", "[calc_area(", "[area_of("),
    Edit("geometry/__init__.py", '"calc_area"', '"area_of"'),
)

RENAME = Task(
    name="rename-function",
    kind=Kind.REFACTOR,
    prompt=(
        "Rename the function calc_area to area_of everywhere in this project: code, tests and documentation. Other "
        "names stay."
    ),
    files={
        "geometry/__init__.py": 'from geometry.shapes import calc_area\n\n__all__ = ["calc_area"]\n',
        "geometry/shapes.py": "def calc_area(width, height):\n    return width * height\n",
        "geometry/report.py": """
            from geometry.shapes import calc_area


            def describe(width, height):
                return f"area: {calc_area(width, height)}"


            def recalc_areas(sizes):
                return [calc_area(*size) for size in sizes]
        """,
        "test_geometry.py": """
            from geometry import calc_area


            def test_area():
                assert calc_area(2, 3) == 6
        """,
        "README.md": "# Geometry\n\n`calc_area(2, 3)` is 6.\n",
    },
    check=_rename,
    solution=(*_RENAMED, *_IMPORTED, *_IN_REPORT),
    mistakes={
        "the documentation is forgotten": (*_RENAMED[:2], *_IMPORTED, *_IN_REPORT),
        "another function is renamed with it": (
            *_RENAMED,
            *_IMPORTED,
            *_IN_REPORT,
            Edit("geometry/report.py", "recalc_areas", "rearea_ofs"),
        ),
        "an alias stays": (
            Edit("geometry/shapes.py", "def calc_area", "def area_of"),
            Edit("geometry/__init__.py", "import calc_area", "import area_of, area_of as calc_area"),
        ),
    },
)


def _module(judge: Judge) -> None:
    judge.require(not judge.exists("app/helpers.py"), "app/helpers.py is still there")
    judge.python("""
        from app.formatting import money, title
        from app.main import bill
        assert money(1250) == "12.50" and title("two words") == "Two Words"
        assert bill("tea cup", 1250) == "Tea Cup 12.50"
    """)
    judge.require(judge.tests_pass("tests"), "the tests fail")
    judge.expect("python", "-m", "app.main", out="Tea Cup 12.50")


MODULE = Task(
    name="rename-module",
    kind=Kind.REFACTOR,
    prompt="Rename the module app/helpers.py to app/formatting.py and adapt everything that uses it.",
    files={
        "app/__init__.py": "",
        "app/helpers.py": """
            def money(cents):
                return f"{cents / 100:.2f}"


            def title(text):
                return text.title()
        """,
        "app/main.py": """
            from app import helpers
            from app.helpers import title


            def bill(name, cents):
                return f"{title(name)} {helpers.money(cents)}"


            if __name__ == "__main__":
                print(bill("tea cup", 1250))
        """,
        "tests/test_app.py": """
            import app.helpers


            def test_money():
                assert app.helpers.money(5) == "0.05"
        """,
    },
    check=_module,
    solution=(
        Shell(
            "git mv app/helpers.py app/formatting.py && sed -i 's/helpers/formatting/g' app/main.py tests/test_app.py"
        ),
    ),
    mistakes={
        "a copy is made": (Shell("cp app/helpers.py app/formatting.py && sed -i s/helpers/formatting/g app/main.py"),),
        "the tests are forgotten": (
            Shell("git mv app/helpers.py app/formatting.py && sed -i s/helpers/formatting/g app/main.py"),
        ),
    },
)


def _extract(judge: Judge) -> None:
    judge.python("""
        import shop
        assert shop.invoice([10, 20]) == "Total: 35.70" and shop.quote(100) == "Offer: 119.00"
        assert shop.with_tax(100) == 119
        shop.with_tax = lambda net: 7
        assert shop.invoice([10, 20]) == "Total: 7.00", "invoice does not use with_tax"
        assert shop.quote(100) == "Offer: 7.00", "quote does not use with_tax"
    """)
    judge.require(
        judge.read("shop.py").count("0.19") + judge.read("shop.py").count("1.19") <= 1, "the rate is repeated"
    )


EXTRACT = Task(
    name="extract-function",
    kind=Kind.REFACTOR,
    prompt=(
        "invoice and quote in shop.py both compute the tax. Move this into a function with_tax(net) that both use, so "
        "that the rate is written in one place only. What they return must not change."
    ),
    files={
        "shop.py": """
            def invoice(prices):
                net = sum(prices)
                total = net + net * 0.19
                return f"Total: {total:.2f}"


            def quote(net):
                return f"Offer: {net + net * 0.19:.2f}"
        """
    },
    check=_extract,
    solution=(
        Write(
            "shop.py",
            """
            def with_tax(net):
                return net + net * 0.19


            def invoice(prices):
                return f"Total: {with_tax(sum(prices)):.2f}"


            def quote(net):
                return f"Offer: {with_tax(net):.2f}"
            """,
        ),
    ),
    mistakes={
        "one of them keeps its own": (
            Edit(
                "shop.py",
                "def invoice(prices):\n    net = sum(prices)\n    total = net + net * 0.19\n",
                "def with_tax(net):\n    return net + net * 0.19\n\n\n"
                "def invoice(prices):\n    total = with_tax(sum(prices))\n",
            ),
        ),
        "only the tax is returned": (
            Write(
                "shop.py",
                """
                def with_tax(net):
                    return net * 0.19


                def invoice(prices):
                    return f"Total: {sum(prices) + with_tax(sum(prices)):.2f}"


                def quote(net):
                    return f"Offer: {net + with_tax(net):.2f}"
                """,
            ),
        ),
    },
)


def _dataclass(judge: Judge) -> None:
    judge.python("""
        import dataclasses
        from points import Point
        assert dataclasses.is_dataclass(Point)
        assert Point(1, 2) == Point(1, 2) and Point(1, 2) != Point(2, 1)
        assert Point(3).y == 0 and Point(x=3, y=4).length() == 5
        assert len({Point(1, 2), Point(1, 2)}) == 1, "points can no longer be in a set"
        try:
            Point(1, 2).x = 5
        except AttributeError:
            pass
        else:
            raise AssertionError("a point can be changed")
        assert repr(Point(1, 2)) == "Point(x=1, y=2)"
    """)


DATACLASS = Task(
    name="to-dataclass",
    kind=Kind.REFACTOR,
    prompt=(
        "Make Point in points.py a dataclass. It must stay what it is: points cannot be changed, can be compared and "
        "can be put into sets; y is 0 if it is not given."
    ),
    files={
        "points.py": """
            class Point:
                __slots__ = ("x", "y")

                def __init__(self, x, y=0):
                    object.__setattr__(self, "x", x)
                    object.__setattr__(self, "y", y)

                def __setattr__(self, name, value):
                    raise AttributeError("a point cannot be changed")

                def __eq__(self, other):
                    return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

                def __hash__(self):
                    return hash((self.x, self.y))

                def __repr__(self):
                    return f"Point(x={self.x}, y={self.y})"

                def length(self):
                    return (self.x**2 + self.y**2) ** 0.5
        """
    },
    check=_dataclass,
    solution=(
        Write(
            "points.py",
            """
            from dataclasses import dataclass


            @dataclass(frozen=True, slots=True)
            class Point:
                x: float
                y: float = 0

                def length(self):
                    return (self.x**2 + self.y**2) ** 0.5
            """,
        ),
    ),
    mistakes={
        "it can be changed": (
            Write(
                "points.py",
                """
                from dataclasses import dataclass


                @dataclass
                class Point:
                    x: float
                    y: float = 0

                    def length(self):
                        return (self.x**2 + self.y**2) ** 0.5
                """,
            ),
        ),
        "y is required": (
            Write(
                "points.py",
                """
                from dataclasses import dataclass


                @dataclass(frozen=True)
                class Point:
                    x: float
                    y: float

                    def length(self):
                        return (self.x**2 + self.y**2) ** 0.5
                """,
            ),
        ),
    },
)


def _dead(judge: Judge) -> None:
    judge.python("""
        import tools
        for name in ("double", "triple", "by_name"):
            assert hasattr(tools, name), f"{name} is gone"
        for name in ("quadruple", "_old_double"):
            assert not hasattr(tools, name), f"{name} is still there"
        assert tools.by_name("triple")(2) == 6
    """)
    judge.expect("python", "main.py", "double", "4", out="8")
    judge.expect("python", "main.py", "triple", "4", out="12")


DEAD = Task(
    name="remove-unused",
    kind=Kind.REFACTOR,
    prompt=(
        "Remove the functions of tools.py that nothing in this project uses (main.py is its only program; its commands "
        "are listed in commands.txt). Keep everything that is used."
    ),
    files={
        "tools.py": """
            def double(number):
                return number * 2


            def _old_double(number):
                return number + number


            def triple(number):
                return number * 3


            def quadruple(number):
                return _old_double(_old_double(number))


            def by_name(name):
                return globals()[name]
        """,
        "main.py": """
            import sys

            from tools import by_name

            allowed = open("commands.txt").read().split()
            name, number = sys.argv[1:]
            if name not in allowed:
                sys.exit(f"no command {name}")
            print(by_name(name)(int(number)))
        """,
        "commands.txt": "double\ntriple\n",
    },
    check=_dead,
    solution=(
        Edit("tools.py", "def _old_double(number):\n    return number + number\n\n\n", ""),
        Edit("tools.py", "def quadruple(number):\n    return _old_double(_old_double(number))\n\n\n", ""),
    ),
    mistakes={
        "what is used by name is removed": (Write("tools.py", "def by_name(name):\n    return globals()[name]\n"),),
        "what only unused code uses is kept": (
            Edit("tools.py", "def quadruple(number):\n    return _old_double(_old_double(number))\n\n\n", ""),
        ),
    },
)

TASKS = (RENAME, MODULE, EXTRACT, DATACLASS, DEAD)

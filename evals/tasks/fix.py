"""Tasks that fix bugs."""

from evals.judge import Judge
from evals.task import Edit, Kind, Task, Write


def _mean(judge: Judge) -> None:
    judge.require(judge.exists("test_stats.py"), "the tests are gone")
    judge.python("""
        from stats import mean
        assert mean([1, 2]) == 1.5, "the mean of 1 and 2"
        assert mean([4]) == 4
        assert mean([-1, 1, 3, 4]) == 1.75
        try:
            mean([])
        except ValueError:
            pass
        else:
            raise AssertionError("no ValueError for an empty list")
    """)


MEAN = Task(
    name="fix-mean",
    kind=Kind.FIX,
    quick=True,
    prompt="The tests in test_stats.py fail. Fix stats.py so that they pass.",
    files={
        "stats.py": '''
            def mean(numbers):
                """The arithmetic mean."""
                if not numbers:
                    raise ValueError("no numbers")
                return sum(numbers) // len(numbers)
        ''',
        "test_stats.py": """
            import pytest

            from stats import mean


            def test_mean_of_two():
                assert mean([1, 2]) == 1.5


            def test_mean_of_nothing():
                with pytest.raises(ValueError):
                    mean([])
        """,
    },
    check=_mean,
    solution=(Edit("stats.py", "//", "/"),),
    mistakes={
        "the test is changed instead": (Edit("test_stats.py", "1.5", "1"),),
        "only the tested numbers work": (Edit("stats.py", "return sum", "return 1.5 if len(numbers) == 2 else sum"),),
        "the program ends before it is checked": (Edit("stats.py", "def mean", "raise SystemExit(0)\n\n\ndef mean"),),
    },
)


def _pages(judge: Judge) -> None:
    judge.python("""
        from paging import page, page_count
        items = list(range(10))
        assert page(items, 1, size=3) == [0, 1, 2], page(items, 1, size=3)
        assert page(items, 2, size=3) == [3, 4, 5], page(items, 2, size=3)
        assert page(items, 4, size=3) == [9], page(items, 4, size=3)
        assert page(items, 5, size=3) == []
        assert [page_count(n, size=3) for n in (0, 1, 3, 4, 10)] == [0, 1, 1, 2, 4]
    """)


PAGES = Task(
    name="fix-off-by-one",
    kind=Kind.FIX,
    quick=True,
    prompt=(
        "page() in paging.py should return page number `number` of the items, where the first page is number 1. It "
        "returns the wrong items: page(items, 1) gives the second page. Fix it."
    ),
    files={
        "paging.py": '''
            def page(items, number, size=10):
                """Page `number` of the items; the first page is number 1."""
                start = number * size
                return items[start : start + size]


            def page_count(total, size=10):
                """How many pages `total` items fill."""
                return (total + size - 1) // size
        '''
    },
    check=_pages,
    solution=(Edit("paging.py", "number * size", "(number - 1) * size"),),
    mistakes={
        "the last item is lost": (Edit("paging.py", "number * size", "number * size - size - 1"),),
        "the other function is changed": (Edit("paging.py", "total + size - 1", "total + size"),),
    },
)


def _default(judge: Judge) -> None:
    judge.python("""
        from basket import Basket
        first, second = Basket(), Basket()
        first.add("apple")
        assert first.items == ["apple"] and second.items == [], second.items
        given = ["pear"]
        assert Basket(given).items == ["pear"]
        assert Basket([]).items == []
    """)


DEFAULT = Task(
    name="fix-shared-list",
    kind=Kind.FIX,
    quick=True,
    prompt="Two baskets made with Basket() share their items, as test_basket.py shows. Find out why and fix it.",
    files={
        "basket.py": """
            class Basket:
                def __init__(self, items=[]):
                    self.items = items

                def add(self, item):
                    self.items.append(item)
        """,
        "test_basket.py": """
            from basket import Basket


            def test_baskets_do_not_share():
                first, second = Basket(), Basket()
                first.add("apple")
                assert second.items == []
        """,
    },
    check=_default,
    solution=(
        Edit("basket.py", "items=[]", "items=None"),
        Edit("basket.py", "self.items = items", "self.items = [] if items is None else items"),
    ),
    mistakes={
        "given items are dropped": (Edit("basket.py", "self.items = items", "self.items = []"),),
        "None is kept": (Edit("basket.py", "items=[]", "items=None"),),
    },
)


def _versions(judge: Judge) -> None:
    judge.python("""
        from versions import newest, in_order
        assert in_order(["1.10", "1.9", "1.2.3"]) == ["1.2.3", "1.9", "1.10"], in_order(["1.10", "1.9", "1.2.3"])
        assert newest(["0.9", "0.10", "0.2"]) == "0.10"
        assert newest(["2.0.0", "2.0", "10.0"]) == "10.0"
        assert in_order([]) == []
    """)


VERSIONS = Task(
    name="fix-version-order",
    kind=Kind.FIX,
    prompt="versions.py puts version 1.10 before 1.9. Versions must be ordered by their numbers. Fix both functions.",
    files={
        "versions.py": '''
            def in_order(versions):
                """The versions, oldest first."""
                return sorted(versions)


            def newest(versions):
                return max(versions)
        ''',
        "test_versions.py": """
            from versions import in_order, newest


            def test_order():
                assert in_order(["1.10", "1.9"]) == ["1.9", "1.10"]


            def test_newest():
                assert newest(["1.10", "1.9"]) == "1.10"
        """,
    },
    check=_versions,
    solution=(
        Write(
            "versions.py",
            '''
            def _numbers(version):
                return tuple(int(part) for part in version.split("."))


            def in_order(versions):
                """The versions, oldest first."""
                return sorted(versions, key=_numbers)


            def newest(versions):
                return max(versions, key=_numbers)
            ''',
        ),
    ),
    mistakes={
        "one function is forgotten": (
            Edit(
                "versions.py",
                "sorted(versions)",
                'sorted(versions, key=lambda version: [int(part) for part in version.split(".")])',
            ),
        ),
        "read as decimal numbers": (
            Edit("versions.py", "sorted(versions)", "sorted(versions, key=len)"),
            Edit("versions.py", "max(versions)", "max(versions, key=len)"),
        ),
    },
)


def _two(judge: Judge) -> None:
    judge.python("""
        from shop.cart import total
        from shop.labels import label
        assert total([("tea", 250, 2), ("cup", 1000, 1)]) == 1500, total([("tea", 250, 2), ("cup", 1000, 1)])
        assert total([]) == 0
        assert label("tea", 250) == "tea: 2.50"
        assert label("cup", 1005) == "cup: 10.05", label("cup", 1005)
        assert label("pin", 7) == "pin: 0.07"
    """)


TWO = Task(
    name="fix-two-bugs",
    kind=Kind.FIX,
    prompt="Two tests of this project fail, each for a reason of its own. Make the whole test suite pass.",
    files={
        "shop/__init__.py": "",
        "shop/cart.py": """
            def total(lines):
                \"\"\"The price of all lines, each (name, price in cents, quantity).\"\"\"
                return sum(price + quantity for _, price, quantity in lines)
        """,
        "shop/labels.py": """
            def label(name, cents):
                return f"{name}: {cents // 100}.{cents % 100}"
        """,
        "test_shop.py": """
            from shop.cart import total
            from shop.labels import label


            def test_total():
                assert total([("tea", 250, 2)]) == 500


            def test_label():
                assert label("tea", 250) == "tea: 2.50"


            def test_label_with_few_cents():
                assert label("cup", 1005) == "cup: 10.05"
        """,
    },
    check=_two,
    solution=(
        Edit("shop/cart.py", "price + quantity", "price * quantity"),
        Edit("shop/labels.py", "% 100}", "% 100:02}"),
    ),
    mistakes={
        "only one is fixed": (Edit("shop/cart.py", "price + quantity", "price * quantity"),),
        "the failing tests are deleted": (
            Write("test_shop.py", "from shop.cart import total\n\n\ndef test_total():\n    assert total([]) == 0\n"),
        ),
    },
)


def _traceback(judge: Judge) -> None:
    judge.expect("python", "report.py", "full.json", out="Ada: 3\nBen: 0")
    judge.put("other.json", '[{"name": "Eve"}, {"name": "Flo", "visits": []}, {"name": "Gil", "visits": [1, 2]}]')
    judge.expect("python", "report.py", "other.json", out="Eve: 0\nFlo: 0\nGil: 2")


TRACEBACK = Task(
    name="fix-traceback",
    kind=Kind.FIX,
    prompt=(
        "`python report.py full.json` fails:\n\n"
        '  File "report.py", line 8, in main\n'
        "    print(f\"{person['name']}: {len(person['visits'])}\")\n"
        "KeyError: 'visits'\n\n"
        "Someone without visits should be shown with 0. The data is right as it is; fix the program."
    ),
    files={
        "report.py": """
            import json
            import sys


            def main(file):
                with open(file) as opened:
                    for person in json.load(opened):
                        print(f"{person['name']}: {len(person['visits'])}")


            main(sys.argv[1])
        """,
        "full.json": '[{"name": "Ada", "visits": [1, 2, 3]}, {"name": "Ben"}]\n',
    },
    check=_traceback,
    solution=(Edit("report.py", "person['visits']", "person.get('visits', [])"),),
    mistakes={
        "the data is changed": (Edit("full.json", '"Ben"', '"Ben", "visits": []'),),
        "people without visits are left out": (
            Edit("report.py", "            print", "            if 'visits' in person:\n                print"),
        ),
    },
)


def _circular(judge: Judge) -> None:
    for first in ("orders", "customers", "main"):
        judge.python(f"import {first}")
    judge.expect("python", "main.py", out="Ada ordered tea")
    judge.python("""
        from customers import Customer
        from orders import Order
        customer = Customer("Ben")
        order = customer.order("cups")
        assert isinstance(order, Order) and order.customer is customer and customer.orders == [order]
        assert order.describe() == "Ben ordered cups"
    """)


CIRCULAR = Task(
    name="fix-circular-import",
    kind=Kind.FIX,
    prompt="`python main.py` fails with an ImportError. Fix it; the classes must keep their names and modules.",
    files={
        "main.py": """
            from customers import Customer

            print(Customer("Ada").order("tea").describe())
        """,
        "customers.py": """
            from orders import Order


            class Customer:
                def __init__(self, name):
                    self.name = name
                    self.orders = []

                def order(self, what):
                    order = Order(self, what)
                    self.orders.append(order)
                    return order
        """,
        "orders.py": """
            from customers import Customer


            class Order:
                def __init__(self, customer, what):
                    if not isinstance(customer, Customer):
                        raise TypeError("no customer")
                    self.customer = customer
                    self.what = what

                def describe(self):
                    return f"{self.customer.name} ordered {self.what}"
        """,
    },
    check=_circular,
    solution=(
        Edit("orders.py", "from customers import Customer\n\n\n", ""),
        Edit("orders.py", "        if not", "        from customers import Customer\n\n        if not"),
    ),
    mistakes={
        "the name is then missing": (Edit("orders.py", "from customers import Customer\n\n\n", ""),),
        "one class is moved": (
            Edit("customers.py", "from orders import Order\n", "class Order:\n    pass\n"),
            Edit("main.py", 'print(Customer("Ada").order("tea").describe())', 'print("Ada ordered tea")'),
        ),
    },
)

TASKS = (MEAN, PAGES, DEFAULT, VERSIONS, TWO, TRACEBACK, CIRCULAR)

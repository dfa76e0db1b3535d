"""Tasks that write tests. They are judged by what their tests find: the right code must pass, broken code must not."""

from evals.judge import Judge
from evals.task import Kind, Task, Write

_DURATION = '''
def parse_duration(text):
    """Seconds of a text such as "90s", "5m" or "1h30m"; ValueError for anything else."""
    seconds, digits = 0, ""
    for sign in text:
        if sign.isdigit():
            digits += sign
        elif digits and sign in "hms":
            seconds += int(digits) * {"h": 3600, "m": 60, "s": 1}[sign]
            digits = ""
        else:
            raise ValueError(f"no duration: {text!r}")
    if digits or not text:
        raise ValueError(f"no duration: {text!r}")
    return seconds
'''

_BROKEN_DURATIONS = {
    "minutes": ('"m": 60', '"m": 100'),
    "hours": ('"h": 3600', '"h": 60'),
    "only the last part": ("seconds += int", "seconds = int"),
    "a number without unit": ("if digits or not text", "if not text"),
    "unknown units": ('raise ValueError(f"no duration: {text!r}")\n    if', "return 0\n    if"),
}


def _durations(judge: Judge) -> None:
    judge.put("durations.py", _DURATION)
    judge.require(judge.tests_pass("test_durations.py"), "there are no tests, or they fail with the right code")
    for name, (right, broken) in _BROKEN_DURATIONS.items():
        judge.put("durations.py", _DURATION.replace(right, broken))
        judge.require(not judge.tests_pass("test_durations.py"), f"the tests pass with a broken function: {name}")


DURATIONS = Task(
    name="write-tests",
    kind=Kind.TEST,
    prompt=(
        "Write pytest tests for parse_duration in a file test_durations.py. They should cover each unit, units "
        "together, and texts that are refused: a number without a unit and an unknown unit."
    ),
    files={"durations.py": _DURATION},
    check=_durations,
    solution=(
        Write(
            "test_durations.py",
            """
            import pytest

            from durations import parse_duration


            def test_units():
                assert [parse_duration(text) for text in ("90s", "5m", "2h")] == [90, 300, 7200]


            def test_units_together():
                assert parse_duration("1h30m5s") == 5405


            def test_refused():
                for text in ("5", "5x", "h", ""):
                    with pytest.raises(ValueError):
                        parse_duration(text)
            """,
        ),
    ),
    mistakes={
        "only what goes well": (
            Write(
                "test_durations.py",
                "from durations import parse_duration\n\n\n"
                'def test_units():\n    assert parse_duration("1h30m5s") == 5405\n',
            ),
        ),
        "they expect what is not so": (
            Write(
                "test_durations.py",
                'from durations import parse_duration\n\n\ndef test_units():\n    assert parse_duration("1h") == 60\n',
            ),
        ),
        "nothing is imported": (Write("test_durations.py", "def test_units():\n    assert 1 * 60 == 60\n"),),
    },
)

_WRAP = '''
def wrap(text, width):
    """The words of a text in lines of at most `width` characters; a longer word gets a line of its own."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines
'''


def _regression(judge: Judge) -> None:
    judge.put("wrapping.py", _WRAP)
    judge.require(judge.tests_pass("test_wrapping.py"), "the tests fail with the right code")
    judge.put("wrapping.py", _WRAP.replace("<= width", "< width"))
    judge.require(not judge.tests_pass("test_wrapping.py"), "the bug comes back and no test notices")
    judge.put("wrapping.py", _WRAP.replace('f"{lines[-1]} {word}".strip()', "lines[-1] + word"))
    judge.require(not judge.tests_pass("test_wrapping.py"), "the test that was there is gone")


REGRESSION = Task(
    name="write-regression-test",
    kind=Kind.TEST,
    prompt=(
        "wrap() once began a new line although the next word fitted exactly (it compared with < instead of <=). That "
        "is fixed, but no test would notice if it came back. Add such a test to test_wrapping.py."
    ),
    files={
        "wrapping.py": _WRAP,
        "test_wrapping.py": """
            from wrapping import wrap


            def test_words_are_separated():
                assert wrap("a b", 10) == ["a b"]
        """,
    },
    check=_regression,
    solution=(
        Write(
            "test_wrapping.py",
            """
            from wrapping import wrap


            def test_words_are_separated():
                assert wrap("a b", 10) == ["a b"]


            def test_a_word_that_fits_exactly_stays_on_the_line():
                assert wrap("ab cd ef", 5) == ["ab cd", "ef"]
            """,
        ),
    ),
    mistakes={
        "the width is not the exact one": (
            Write(
                "test_wrapping.py",
                "from wrapping import wrap\n\n\n"
                'def test_words_are_separated():\n    assert wrap("a b", 10) == ["a b"]\n\n\n'
                'def test_width():\n    assert wrap("ab cd ef", 6) == ["ab cd", "ef"]\n',
            ),
        ),
        "the old test is lost": (
            Write(
                "test_wrapping.py",
                'from wrapping import wrap\n\n\ndef test_width():\n    assert len(wrap("abc de", 6)) == 1\n',
            ),
        ),
    },
)

TASKS = (DURATIONS, REGRESSION)

"""A whole corpus in one test, where running a test for each member would cost far more than what it checks."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but one test: it checks every case and names each that failed.

    Only for tests that leave nothing behind, because all cases share the test's fixtures.
    """
    arguments = (names,) if isinstance(names, str) else names
    every = list(cases)
    assert every, "a test without cases checks nothing"

    def decorate(test: Test) -> Test:
        assert not inspect.iscoroutinefunction(test)

        @functools.wraps(test)
        def check_all(**fixtures: Any) -> None:
            failures = []
            for case in every:
                values = case if len(arguments) > 1 else (case,)
                try:
                    test(**fixtures, **dict(zip(arguments, values, strict=True)))
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"Case: {case!r}")
                    failures.append((case, failure))
            if failures:
                named = "\n".join(repr(case) for case, _ in failures)
                raise BaseExceptionGroup(
                    f"{len(failures)} of {len(every)} cases failed:\n{named}\n", [failure for _, failure in failures]
                )

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        check_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        check_all.cases = len(every) * getattr(test, "cases", 1)  # type: ignore[attr-defined]
        return check_all

    return decorate

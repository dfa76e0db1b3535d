"""Whether a shell glob and a rule's pattern can match the same file.

Owns the comparison of the two languages. When not sure it answers “yes”; the cost is one question to a person. Must not
know commands, nor look at the disk.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum

from longboat.permissions.rules import PathPattern, relative_to

MAX_GLOB = 4_096
"""No system accepts a longer name; a longer one is treated as if it could match anything."""
_MAX_SIGNS = 16
"""More would make the comparison slow, and no one writes that many."""
_MAX_FORMS = 16

_WILD = re.compile(r"[*?\[]+")
_SHELL_SIGN = re.compile(r"\*+|\?|\[[^]/]*\]?|[^*?\[]", re.DOTALL)


class _Sign(Enum):
    """Signs that match more than one letter."""

    FIRST = "not a dot, and the one behind it may go on; or nothing at all"
    SHOWN = "one letter that is no dot"
    ONE = "one letter"
    BYTE = "one letter or a part of it: the locale may be one in which a letter is a byte"
    MANY = "letters, but no slash"
    DEEP = "anything"


_Path = tuple[str | _Sign, ...]
_SPECIAL: dict[str, tuple[_Path, ...]] = {
    "/**/": (("/",), ("/", _Sign.DEEP, "/")),
    "/**": ((), ("/", _Sign.DEEP)),
    "**/": ((), (_Sign.DEEP, "/")),
    "**": ((_Sign.DEEP,),),
    "*": ((_Sign.MANY,),),
    "?": ((_Sign.ONE,),),
}
"""What each sign of a rule may match."""
_RUNS = (_Sign.MANY, _Sign.DEEP)


def may_name(glob: str, pattern: PathPattern, directory: str) -> bool:
    """Whether the pattern matches something that an absolute, normalized `glob` matches."""
    return _meets(glob, (), pattern, directory)


def may_begin(start: str, pattern: PathPattern, directory: str) -> bool:
    """Whether it fits something whose name begins so."""
    return _meets(start, (_Sign.DEEP,), pattern, directory)


def may_hold(place: str, pattern: PathPattern, directory: str, *, deep: bool) -> bool:
    """Whether it fits something in the directory `place`, or with `deep` anywhere below it."""
    return _meets(place.rstrip("/") + "/", (_Sign.DEEP if deep else _Sign.MANY,), pattern, directory)


def _meets(glob: str, end: _Path, pattern: PathPattern, directory: str) -> bool:
    if len(glob) > MAX_GLOB or len(_WILD.findall(glob)) > _MAX_SIGNS:
        return True
    root = directory.rstrip("/") + "/"
    if pattern.absolute or not (relative_to(glob, directory) or glob == root):
        named = (*_shell_path(glob), *end)
        start = () if pattern.absolute else tuple(root)
    else:
        named, start = (*_shell_path(glob[len(root) :]), *end), ()
    return any(_overlap(named, (*start, *form)) for form in _forms(pattern.signs()))


def _shell_path(glob: str) -> Iterator[str | _Sign]:
    """Without `dotglob` a sign at the beginning of a name does not match a dot."""
    begins = True
    for sign in _SHELL_SIGN.findall(glob):
        if sign[0] == "*":
            yield from (_Sign.FIRST, _Sign.MANY) if begins else (_Sign.MANY,)
        elif sign == "?":
            yield _Sign.SHOWN if begins else _Sign.BYTE
        elif sign[0] == "[":
            yield _Sign.MANY  # One of its letters; or itself, where nothing fits it.
        else:
            yield sign
        begins = sign == "/"


def _forms(signs: Iterable[str]) -> list[_Path]:
    """The pattern of a rule without its optional parts: with and without each of them."""
    forms: list[_Path] = [()]
    for sign in signs:
        choices = _choices(sign)
        if len(forms) * len(choices) > _MAX_FORMS:
            choices = ((_Sign.DEEP,),)
        forms = [(*form, *choice) for form in forms for choice in choices]
    return forms


def _choices(sign: str) -> tuple[_Path, ...]:
    return _SPECIAL.get(sign) or (tuple(sign[1:] if len(sign) == 2 and sign[0] == "\\" else sign),)


def _overlap(one: _Path, other: _Path) -> bool:
    """Walks both at once. `todo` has the places that the same text may have led to."""
    todo = [(0, 0)]
    seen = set(todo)
    while todo:
        at, to = todo.pop()
        if at == len(one) and to == len(other):
            return True
        for place in _onward(one, at, other, to):
            if place not in seen:
                seen.add(place)
                todo.append(place)
    return False


def _onward(one: _Path, at: int, other: _Path, to: int) -> Iterator[tuple[int, int]]:
    here = one[at] if at < len(one) else None
    there = other[to] if to < len(other) else None
    if here in _RUNS or here is _Sign.BYTE:
        yield at + 1, to
    if here is _Sign.FIRST:
        yield at + 2, to
    if there in _RUNS:
        yield at, to + 1
    if here is not None and there is not None and _agree(here, there):
        yield at if here in _RUNS else at + 1, to if there in _RUNS else to + 1


def _agree(here: str | _Sign, there: str | _Sign) -> bool:
    """Whether one letter fits both."""
    if isinstance(here, str) and isinstance(there, str):
        return here == there
    if isinstance(here, str):
        here, there = there, here
    if here is _Sign.DEEP or isinstance(here, str) or not isinstance(there, str):
        return True
    return there != "/" and not (there == "." and here in (_Sign.FIRST, _Sign.SHOWN))

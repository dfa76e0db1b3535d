"""Which programs send something to another computer, and whether it may be a file or a secret.

Owns the options of those programs. Must not know how dangerous that is, nor rules.
"""

import re
from collections.abc import Callable, Sequence
from enum import IntEnum

from longboat.permissions.shell.script import Kind, Word
from longboat.permissions.shell.syntax import names


class Sent(IntEnum):
    """The worst last."""

    NOTHING = 0
    DATA = 1
    SECRET = 2
    """Or a file."""


_FLAGS = r"-[#0-46BGIJLNORSVZafgijklnpqsv]*"
"""Letters of curl without a value, which may stand before one with a value."""
_DATA_OF_CURL = re.compile(rf"{_FLAGS}[dF].*|--(?:data|form|json)[a-z-]*(?:=.*)?", re.DOTALL)
_METHOD_OF_CURL = re.compile(rf"(?:{_FLAGS}X|--request=)(.+)", re.DOTALL)
_FILE_OF_CURL = re.compile(
    rf"{_FLAGS}T.*|--upload-file(?:=.*)?|(?:{_FLAGS}[dF]|--(?:data|form|json)[a-z-]*=)?(?:[^@\s]*=)?[@<].*", re.DOTALL
)
_LOGIN_OF_CURL = re.compile(
    rf"{_FLAGS}u.*|-[A-Za-z]*n|--(?:cert|key|netrc|oauth2-bearer|proxy-user|user)[a-z-]*(?:=.*)?", re.DOTALL
)
_DATA_OF_WGET = re.compile(r"--(?:post|body)-(?:data|file)(?:=.*)?|--method(?:=.*)?", re.DOTALL)
_FILE_OF_WGET = re.compile(r"--(?:post|body)-file(?:=.*)?|--(?:http-)?(?:user|password)(?:=.*)?", re.DOTALL)
_READING_METHODS = names("GET HEAD OPTIONS")
_SECRET_HEADER = re.compile(
    r"(?:--header=|-H)?['\"]?(?:[\w-]*authorization|cookie|[\w-]*(?:key|token))\s*:.*", re.I | re.S
)
_COMPUTED = re.compile(r"\$\(|`|<\(")
_SECRET_NAME = re.compile(r"\$\{?\w*(?:AUTH|CRED|KEY|PASS|PWD|SECRET|TOKEN)", re.IGNORECASE)
_LOCAL = re.compile(r"(?:https?://)?(?:localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0)(?::\d+)?(?:[/?#].*)?", re.DOTALL)
_ADDRESS = re.compile(r"(?:[a-z]+://)?[\w.-]+\.[a-z]{2,}(?::\d+)?(?:[/?#].*)?|[a-z]+://.*", re.IGNORECASE | re.DOTALL)
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//).*|rsync://.*", re.DOTALL)
_ALWAYS = names("ftp lftp nc ncat netcat rclone scp sftp socat ssh telnet")
_BY_NAME = names("curl dig host http httpie https nslookup ping wget xh")
"""What they are asked for is sent, so a name that is computed may carry anything out."""
_WRITING_VERBS = names("DELETE PATCH POST PUT")


def what_is_sent(name: str, words: Sequence[Word]) -> Sent:
    """What the program `name` sends if it is called with these words."""
    if name in _ALWAYS:
        return Sent.DATA
    texts = [word.text for word in words]
    if _stays_here(texts):
        return Sent.NOTHING
    if name in _BY_NAME and any(word.kind is Kind.DYNAMIC and _may_tell(word.text) for word in words):
        return Sent.SECRET
    return _SENDERS[name](texts) if name in _SENDERS else Sent.NOTHING


def _may_tell(source: str) -> bool:
    return bool(_COMPUTED.search(source) or _SECRET_NAME.search(source))


def _stays_here(texts: Sequence[str]) -> bool:
    """Whether all the addresses that it names are of this computer."""
    words = [text for text in texts if not text.startswith("-")]
    named = [text for text in words if _LOCAL.fullmatch(text) or _ADDRESS.fullmatch(text)]
    return bool(named) and all(map(_LOCAL.fullmatch, named))


def _by_curl(texts: Sequence[str]) -> Sent:
    found = Sent.NOTHING
    for text, after in zip(texts, [*texts[1:], ""], strict=True):
        glued = _METHOD_OF_CURL.fullmatch(text)
        method = glued.group(1) if glued else after if text in ("-X", "--request") else ""
        if _FILE_OF_CURL.fullmatch(text) or _LOGIN_OF_CURL.fullmatch(text) or _SECRET_HEADER.fullmatch(text):
            return Sent.SECRET
        if _DATA_OF_CURL.fullmatch(text) or (method and method.upper() not in _READING_METHODS):
            found = Sent.DATA
    return found


def _by_wget(texts: Sequence[str]) -> Sent:
    if any(_FILE_OF_WGET.fullmatch(text) or _SECRET_HEADER.fullmatch(text) for text in texts):
        return Sent.SECRET
    return Sent.DATA if any(map(_DATA_OF_WGET.fullmatch, texts)) else Sent.NOTHING


def _by_httpie(texts: Sequence[str]) -> Sent:
    if any(re.fullmatch(r"[\w.-]*=?@.*", text, re.DOTALL) or _SECRET_HEADER.fullmatch(text) for text in texts):
        return Sent.SECRET
    return Sent.DATA if _WRITING_VERBS & {text.upper() for text in texts} else Sent.NOTHING


def _by_rsync(texts: Sequence[str]) -> Sent:
    return Sent.DATA if texts and _REMOTE.fullmatch(texts[-1]) else Sent.NOTHING


def _by_bucket(texts: Sequence[str]) -> Sent:
    """`aws s3 cp a s3://b`: the last place is where to."""
    places = [text for text in texts if not text.startswith("-")]
    return Sent.DATA if places and re.match(r"(?:s3|gs)://", places[-1]) and "ls" not in places else Sent.NOTHING


_SENDERS: dict[str, Callable[[Sequence[str]], Sent]] = {
    "aws": _by_bucket,
    "curl": _by_curl,
    "gcloud": _by_bucket,
    "gsutil": _by_bucket,
    "http": _by_httpie,
    "https": _by_httpie,
    "rsync": _by_rsync,
    "wget": _by_wget,
    "xh": _by_httpie,
}

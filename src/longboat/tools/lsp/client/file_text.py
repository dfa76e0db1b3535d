"""File contents for servers: text, with a size limit. Blocking: call it off the event loop."""

from pathlib import Path

from longboat.tools.context import ToolError
from longboat.tools.files.file_io import read
from longboat.tools.files.paths import Target, printable
from longboat.tools.files.text import NotText, Text, decode

MAX_CHARACTERS = 2_000_000


def read_text(path: Path) -> str:
    """What a resolved path holds, without a byte-order mark."""
    name = printable(str(path))
    return decoded(read(Target(given=str(path), path=path, shown=name, inside=True)), name).content


def decoded(content: bytes, shown: str) -> Text:
    try:
        text = decode(content)
    except NotText as error:
        raise ToolError(f"{shown} is not a text file ({error.kind}); no language server understands it.") from None
    if len(text.content) > MAX_CHARACTERS:
        raise ToolError(f"{shown} is too long for a language server. Use grep and view instead.")
    return text

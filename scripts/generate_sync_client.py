"""Writes the sync client, `src/longboat/client/sync.py`, from the async one beside it, `aio.py`.

python scripts/generate_sync_client.py            write it
python scripts/generate_sync_client.py --check    exit 1 if it is stale; write nothing
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "longboat" / "client"
SOURCE = CLIENT / "aio.py"
TARGET = CLIENT / "sync.py"

HEADER = '''"""The sync client. Generated from `aio.py` by `make generate`: change that file, not this one."""
'''

SUBSTITUTIONS = {
    r'\A""".*?"""\n': HEADER,
    # The words of the docstrings
    r"\bfrom asyncio\b": "without asyncio",
    r"\bmany tasks\b": "many threads",
    # Types
    r"\bAsyncGenerator\[(\w+), None\]": r"Generator[\1, None, None]",
    r"\bAsyncGenerator\b": "Generator",
    r"\bCoroutine\[Any, Any, (\w+)\]": r"\1",
    r"\bClient\b": "SyncClient",
    r"\bhttpx2\.Async(\w+)": r"httpx2.\1",
    # Names
    r"\b__a(enter|exit)__\b": r"__\1__",
    r"\bAsyncExitStack\b": "ExitStack",
    r"\benter_async_context\b": "enter_context",
    r"\ba(closing|close|read|iter_raw)\b": r"\1",
    r"\banext\b": "next",
    r"\bimport asyncio\b": "import time",
    r"\basyncio\.sleep\b": "time.sleep",
    # Keywords
    r"\b(async|await) ": "",
}
"""In this order: patterns and what takes their place."""

TIDY = ["check", "--fix-only", "--unsafe-fixes", "--select", "F401,I,UP028"]
"""Unused imports, the order of imports, and loops that are a `yield from` once nothing waits in them."""


def generate(source: str) -> str:
    """The text of the sync client. A substitution that finds nothing is an error: the source has moved on."""
    for pattern, replacement in SUBSTITUTIONS.items():
        source, found = re.subn(pattern, replacement, source, flags=re.DOTALL)
        if not found:
            raise SystemExit(f"{SOURCE.name} has nothing for the substitution {pattern!r} in {Path(__file__).name}.")
    return _ruff(["format"], _ruff(TIDY, source))


def _ruff(arguments: Sequence[str], text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def main(arguments: Sequence[str], target: Path = TARGET) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = generate(SOURCE.read_text(encoding="utf-8"))
    if target.exists() and target.read_text(encoding="utf-8") == text:
        return 0
    if arguments:
        print(f"{target} is stale: run make generate", file=sys.stderr)
        return 1
    target.write_text(text, encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

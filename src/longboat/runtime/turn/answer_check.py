"""Checks one JSON value against a schema in a separate process: a hostile schema can take any time and memory, and
the validator blocks the interpreter while it works. Run with `python -m`.

Reads `{"schema": …, "value": …}` from stdin and prints the problems as a JSON list.
"""

import resource
import sys
from typing import Any

import msgspec

MAX_COMPLAINTS = 5
MAX_COMPLAINT = 500
"""Characters of one: a validator quotes what it complains of."""
MEMORY = 1 << 30
SECONDS = 5


class Task(msgspec.Struct, frozen=True):
    schema: dict[str, Any]
    value: Any


def problems(task: Task) -> list[str]:
    from longboat.runtime.turn.answer_schema import compiled

    found: list[str] = []
    for fault in compiled(task.schema).iter_errors(task.value):
        place = "/".join(str(step) for step in fault.instance_path)
        found.append(f"{'at ' + place if place else 'the whole answer'}: {fault.message}"[:MAX_COMPLAINT])
        if len(found) == MAX_COMPLAINTS:
            break
    return found


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.buffer.write(msgspec.json.encode(problems(task)))


if __name__ == "__main__":
    main()

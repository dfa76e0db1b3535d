"""Answers with a schema: the answer is JSON that matches the prompt's schema, or the run fails.

Owns the check and how often a model may try again. The validator's regular expressions take linear time and it fetches
nothing, because a schema is untrusted. Must not know turns.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from longboat.errors import BadInput, ModelError
from longboat.runtime.turn import answer_check
from longboat.runtime.turn.answer_check import MAX_COMPLAINT, Task

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_SCHEMA = 64 * 1024
"""Bytes."""
MAX_REPAIRS = 2
CHECK_S = 10.0


class AnswerSchema:
    """The schema that one run's answer must match. `answer` is its JSON once it does."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.answer: str | None = None
        self._repairs = 0

    @property
    def instruction(self) -> str:
        """For the system prompt: some servers hold a model to a schema, the others only ask it."""
        written = msgspec.json.encode(self.schema).decode()
        return (
            "\n\nYour final answer is read by a program. It must be one JSON value that matches this JSON Schema, and "
            f"nothing else: no words around it, no code fence.\n{written}"
        )

    async def complaint(self, text: str) -> str | None:
        """What to tell the model of an answer that does not fit, or None if it does. Raises when it had its tries."""
        found = _unfenced(text).strip()
        problems = await self._problems(found)
        if not problems:
            self.answer = found
            return None
        told = "\n".join(f"- {problem}" for problem in problems)
        if self._repairs == MAX_REPAIRS:
            raise ModelError(
                f"Tried {MAX_REPAIRS + 1} times; the last answer is wrong:\n{told}",
                title="The answer does not match its schema",
                code="schema_mismatch",
            )
        self._repairs += 1
        return f"That answer does not match the JSON Schema:\n{told}\nAnswer again, with only the corrected JSON."

    async def _problems(self, found: str) -> list[str]:
        try:
            value = msgspec.json.decode(found)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return [f"It is not JSON: {error}."]
        task = msgspec.json.encode(Task(schema=dict(self.schema), value=value))
        environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", answer_check.__name__),
            cwd="/",
            env=environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(CHECK_S):
                said, _ = await process.communicate(task)
        except TimeoutError:
            said = b""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            return msgspec.json.decode(said, type=list[str])
        except msgspec.DecodeError:
            raise ModelError(
                "Checking the answer took too much time or memory. Send a simpler schema.",
                title="The schema is too complex",
                code="schema_too_complex",
            ) from None


def _unfenced(text: str) -> str:
    """What stands in a code fence, if the answer has one."""
    start = text.find("```")
    first, last = text.find("\n", start), text.rfind("\n```")
    return text[first + 1 : last] if 0 <= start < first <= last else text


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that no answer can be checked with."""
    try:
        size = len(msgspec.json.encode(schema))
    except RecursionError:
        size = MAX_SCHEMA + 1
    if size > MAX_SCHEMA:
        raise BadInput(f"The schema is larger than {MAX_SCHEMA >> 10} KB. Send a smaller one.", code="bad_schema")
    compiled(schema)


def compiled(schema: Mapping[str, Any]) -> "Validator":
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            dict(schema), pattern_options=jsonschema_rs.RegexOptions(), retriever=_fetch_nothing
        )
    except ValueError as error:
        reason = str(error).partition("\n")[0][:MAX_COMPLAINT]
        raise BadInput(f"The schema is not a valid JSON Schema: {reason}", code="bad_schema") from None


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not in the schema, and nothing is fetched")

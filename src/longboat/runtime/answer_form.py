"""The form of an answer: JSON that fits the schema that came with the prompt, or the run fails.

Owns the check and how often a model may try again. The validator's regular expressions take linear time and it fetches
nothing: a schema is a stranger's text that every client's server runs. Must not know turns.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from longboat.errors import BadInput, ModelError

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_SCHEMA = 64 * 1024
"""Bytes."""
MAX_REPAIRS = 2
MAX_COMPLAINTS = 5
MAX_COMPLAINT = 500
"""Characters of one: a validator quotes what it complains of."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class AnswerForm:
    """What one run's answer must fit. `answer` is its JSON once it does."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.answer: str | None = None
        self._validator = compiled(schema)
        self._repairs = 0

    @property
    def instruction(self) -> str:
        """For the system prompt: some servers hold a model to a schema, the others only ask it."""
        written = msgspec.json.encode(self.schema).decode()
        return (
            "\n\nYour final answer is read by a program. It must be one JSON value that fits this JSON Schema, and "
            f"nothing else: no words around it, no code fence.\n{written}"
        )

    def complaint(self, text: str) -> str | None:
        """What to tell the model of an answer that does not fit, or None if it does. Raises when it had its tries."""
        found, problems = self._read(text)
        if not problems:
            self.answer = found
            return None
        told = "\n".join(f"- {problem[:MAX_COMPLAINT]}" for problem in problems)
        if self._repairs == MAX_REPAIRS:
            raise ModelError(
                f"{MAX_REPAIRS + 1} tries, and the last one is wrong:\n{told}",
                title="The answer does not fit its schema",
                code="schema_mismatch",
            )
        self._repairs += 1
        return f"That answer does not fit the JSON Schema:\n{told}\nAnswer again, with the corrected JSON alone."

    def _read(self, text: str) -> tuple[str, list[str]]:
        """The JSON of an answer, and what is wrong with it."""
        fenced = _FENCED.search(text)
        found = (fenced[1] if fenced else text).strip()
        try:
            value = msgspec.json.decode(found)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return found, [f"It is not JSON: {error}."]
        problems: list[str] = []
        for fault in self._validator.iter_errors(value):
            place = "/".join(str(step) for step in fault.instance_path)
            problems.append(f"{'at ' + place if place else 'the whole'}: {fault.message}")
            if len(problems) == MAX_COMPLAINTS:
                break
        return found, problems


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that no answer can be checked with."""
    try:
        size = len(msgspec.json.encode(schema))
    except RecursionError:
        size = MAX_SCHEMA + 1
    if size > MAX_SCHEMA:
        raise BadInput(f"The schema has more than {MAX_SCHEMA >> 10} KB.", code="bad_schema")
    compiled(schema)


def compiled(schema: Mapping[str, Any]) -> "Validator":
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            dict(schema), pattern_options=jsonschema_rs.RegexOptions(), retriever=_fetch_nothing
        )
    except ValueError as error:
        reason = str(error).partition("\n")[0][:MAX_COMPLAINT]
        raise BadInput(f"The schema is no JSON Schema: {reason}", code="bad_schema") from None


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not in the schema, and nothing is fetched")

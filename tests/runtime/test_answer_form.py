"""The form of an answer: which schemas are taken, and what is said of answers that do not fit (A6)."""

from typing import Any

import pytest

from longboat.errors import BadInput, ModelError
from longboat.runtime.session.submit import run_from_prompt
from longboat.runtime.turn.answer_schema import MAX_REPAIRS, AnswerSchema, check_schema
from longboat.wire.models import Delivery
from longboat.wire.requests import Submit

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}, "age": {"type": "integer"}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    "said",
    [
        '{"name": "aa"}',
        '\n {"name": "aa"} \n',
        '```json\n{"name": "aa"}\n```',
        'Here it is:\n```\n{"name": "aa"}\n```\nDone.',
    ],
)
async def test_the_json_of_an_answer_is_found(said: str):
    form = AnswerSchema(SCHEMA)
    assert await form.complaint(said) is None
    assert form.answer == '{"name": "aa"}'


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Sure!", "It is not JSON"),
        ("{}", '"name" is a required property'),
        ('{"name": "a", "age": "old"}', "at age:"),
        ("[" * 5000, "It is not JSON"),
    ],
)
async def test_what_is_wrong_is_told_to_the_model_and_at_last_to_the_person(said: str, told: str):
    form = AnswerSchema(SCHEMA)
    for _ in range(MAX_REPAIRS):
        assert told in (await form.complaint(said) or "")
    with pytest.raises(ModelError, match="Tried 3 times") as caught:
        await form.complaint(said)
    assert (caught.value.code, told in caught.value.message, form.answer) == ("schema_mismatch", True, None)


async def test_a_pattern_that_backtracks_for_ever_elsewhere_is_just_a_pattern_here():
    assert "at name" in (await AnswerSchema(SCHEMA).complaint('{"name": "' + "a" * 5000 + 'b"}') or "")


async def test_a_fence_that_never_closes_is_no_work():
    """Linear: a model that runs on in newlines would stop the server."""
    assert "It is not JSON" in (await AnswerSchema(SCHEMA).complaint("```json" + "\n" * 200_000) or "")


async def test_a_schema_that_asks_for_endless_work_ends_the_run_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    """Promise 5: two to the fortieth branches, in a process that may be ended."""
    monkeypatch.setattr("longboat.runtime.turn.answer_schema.CHECK_S", 0.5)
    definitions: dict[str, Any] = {"s0": {"type": "null"}}
    for level in range(40):
        definitions[f"s{level + 1}"] = {"anyOf": [{"$ref": f"#/$defs/s{level}"}, {"$ref": f"#/$defs/s{level}"}]}
    form = AnswerSchema({"$defs": definitions, "$ref": "#/$defs/s40"})
    with pytest.raises(ModelError) as caught:
        await form.complaint("1")
    assert caught.value.code == "schema_too_complex"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"pattern": "("},
        {"description": "x" * 70_000},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_prompt(schema: dict[str, Any]):
    with pytest.raises(BadInput) as caught:
        check_schema(schema)
    assert caught.value.code == "bad_schema"
    with pytest.raises(BadInput):
        run_from_prompt(Submit(session_id="s", prompt="hi", schema=schema))


def test_a_prompt_with_a_schema_has_a_turn_of_its_own():
    record = run_from_prompt(Submit(session_id="s", prompt="hi", schema=SCHEMA, effort="low"))
    assert record.run.delivery is Delivery.QUEUE
    assert (record.options.schema, record.options.effort) == (SCHEMA, "low")
    with pytest.raises(BadInput, match="Queue it"):
        run_from_prompt(Submit(session_id="s", prompt="hi", schema=SCHEMA, delivery=Delivery.STEER))

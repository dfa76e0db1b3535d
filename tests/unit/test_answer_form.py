"""The form of an answer: which schemas are taken, and what is said of answers that do not fit (A6)."""

import time
from typing import Any

import pytest

from longboat.errors import BadInput, ModelError
from longboat.runtime.answer_form import MAX_REPAIRS, AnswerForm, check_schema
from longboat.runtime.intake import take_in
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
def test_the_json_of_an_answer_is_found(said: str):
    form = AnswerForm(SCHEMA)
    assert form.complaint(said) is None
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
def test_what_is_wrong_is_told_to_the_model_and_at_last_to_the_person(said: str, told: str):
    form = AnswerForm(SCHEMA)
    for _ in range(MAX_REPAIRS):
        assert told in (form.complaint(said) or "")
    with pytest.raises(ModelError, match="3 tries") as caught:
        form.complaint(said)
    assert (caught.value.code, told in caught.value.message, form.answer) == ("schema_mismatch", True, None)


def test_a_pattern_that_backtracks_for_ever_elsewhere_takes_no_time_here():
    form = AnswerForm(SCHEMA)
    before = time.monotonic()
    assert form.complaint('{"name": "' + "a" * 5000 + 'b"}') is not None
    assert time.monotonic() - before < 1


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
        take_in(Submit(session_id="s", prompt="hi", schema=schema))


def test_a_prompt_with_a_schema_has_a_turn_of_its_own():
    record = take_in(Submit(session_id="s", prompt="hi", schema=SCHEMA, effort="low"))
    assert record.run.delivery is Delivery.QUEUE
    assert (record.options.schema, record.options.effort) == (SCHEMA, "low")
    with pytest.raises(BadInput, match="Queue it"):
        take_in(Submit(session_id="s", prompt="hi", schema=SCHEMA, delivery=Delivery.STEER))

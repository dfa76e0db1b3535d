"""`/server:prompt arguments`: how such a call is spelled, and which word is which argument."""

import pytest

from longboat.runtime.turn.mcp_prompts import PromptCall, command_info, fill_in_prompt, find_call, pair_arguments
from longboat.tools.context import ToolError
from longboat.tools.mcp import McpArgument, McpPrompt
from longboat.wire.models import Delivery, Message, Role, Run, RunState, TextPart
from longboat.wire.workspace_state import CommandArgument, CommandInfo

REVIEW = McpPrompt(
    server="gh",
    name="review",
    description="Review a file.",
    arguments=(McpArgument(name="path", description="Which one.", required=True), McpArgument(name="tone")),
)
HELLO = McpPrompt(server="gh", name="say hello", description="", arguments=())


def test_a_call_names_a_server_and_its_prompt() -> None:
    assert find_call("/gh:review a.py\ntone=kind") == PromptCall(
        server="gh", name="review", arguments="a.py\ntone=kind"
    )
    assert find_call("/gh:pull/list") == PromptCall(server="gh", name="pull/list", arguments="")
    for text in ("/review a.py", "gh:review", "/usr/bin:/bin", "/gh: review", " /gh:review", "/gh:", "see /gh:review"):
        assert find_call(text) is None, text


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a.py", {"path": "a.py"}),
        ("a.py kind", {"path": "a.py", "tone": "kind"}),
        ("tone=kind a.py", {"path": "a.py", "tone": "kind"}),
        ("path=a.py", {"path": "a.py"}),
        ("'my file.py' tone='very kind'", {"path": "my file.py", "tone": "very kind"}),
        ("a.py kind but firm", {"path": "a.py", "tone": "kind but firm"}),
        ("my file.py tone=kind", {"path": "my file.py", "tone": "kind"}),
        ("x=1 y=2", {"path": "x=1", "tone": "y=2"}),
        ("path=a.py path=b.py", {"path": "a.py", "tone": "path=b.py"}),
        ("a.py tone=", {"path": "a.py", "tone": ""}),
        ("don't", {"path": "don't"}),
    ],
)
def test_words_go_to_the_arguments_in_order_unless_they_say_where(text: str, arguments: dict[str, str]) -> None:
    assert pair_arguments(REVIEW, text) == arguments


def test_what_is_missing_or_too_much_is_named() -> None:
    with pytest.raises(ToolError, match=r"Missing: path\. Usage: /gh:review path \[tone\]$"):
        pair_arguments(REVIEW, "tone=kind")
    with pytest.raises(ToolError, match=r"Too many arguments: 'there'\. Usage: /gh:say_hello$"):
        pair_arguments(HELLO, "there")
    assert pair_arguments(HELLO, " ") == {}


def test_faces_list_a_prompt_with_its_server_and_arguments() -> None:
    assert command_info(REVIEW) == CommandInfo(
        name="gh:review",
        description="Review a file.",
        argument_hint="path [tone]",
        server="gh",
        arguments=(
            CommandArgument(name="path", description="Which one.", required=True),
            CommandArgument(name="tone"),
        ),
    )
    assert command_info(HELLO).name == "gh:say_hello"


class Nobody:
    """Workspace tools that must not be used."""

    async def mcp_prompt(self, call: PromptCall) -> str | None:
        raise AssertionError(call)


async def test_a_prompt_that_was_filled_in_before_a_restart_is_not_filled_in_again() -> None:
    """B6: the server is asked once for one run."""
    at = "2026-01-01T00:00:00Z"
    run = Run(
        run_id="r",
        seq=1,
        session_id="s",
        state=RunState.ACTIVE,
        delivery=Delivery.QUEUE,
        prompt="/gh:review a.py",
        accepted_at=at,
    )
    parts = (TextPart(text="/gh:other b.py"),)  # what a server says is no call either
    message = Message(id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=parts, created_at=at)
    assert await fill_in_prompt(Nobody(), run, message, pytest.fail) is message  # type: ignore[arg-type]

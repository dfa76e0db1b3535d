"""`longboat questions`: list and answer the agent's questions."""

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option, everywhere_option, format_option, hand_down
from longboat.cli.permissions import print_asks
from longboat.wire.inbox import InboxKind


@click.group(invoke_without_command=True, short_help="Answer or list the agent's questions.")
@everywhere_option
@format_option
@cwd_option
@click.pass_context
def questions(ctx: click.Context, everywhere: bool, style: str, cwd: str) -> None:
    """Answer the agent's questions, one by one. The first answer counts, from any client.

    In a pipe or a script, this lists them instead, like `longboat questions list`.

    \b
    longboat questions
    longboat questions --all
    longboat questions answer 0198c2f4-… "Use SQLite."
    """
    hand_down(ctx)
    if ctx.invoked_subcommand is None:
        _list(everywhere, style, cwd, answer=True)


@questions.command("list")
@everywhere_option
@format_option
@cwd_option
def list_questions(everywhere: bool, style: str, cwd: str) -> None:
    """List pending questions, oldest first.

    \b
    longboat questions list --format json | jq -r .id
    """
    _list(everywhere, style, cwd)


@questions.command("answer")
@click.argument("question_id", metavar="ID", shell_complete=shell_completion.questions)
@click.argument("answer", metavar="TEXT…", nargs=-1, required=True)
@cwd_option
def answer_question(question_id: str, answer: tuple[str, ...], cwd: str) -> None:
    """Answer a question. Works from any directory.

    TEXT is the number of a choice, or your own answer; give several if the question allows it. A number that is not a
    choice is refused.

    \b
    longboat questions answer 0198c2f4-… 2
    longboat questions answer 0198c2f4-… red blue
    """
    from longboat.cli.asks import is_slip, no_choice
    from longboat.cli.background import ensure_server
    from longboat.cli.console import safe
    from longboat.cli.ids import ask_meant
    from longboat.cli.inbox import pending_asks, workspace_with
    from longboat.cli.main import Failure
    from longboat.cli.options import own_name
    from longboat.client import calls
    from longboat.wire.requests import AnswerQuestion
    from longboat.wire.typed_answers import texts_in

    connection = ensure_server(cwd)
    waiting = pending_asks(connection, InboxKind.QUESTION)
    pending = {item.question.id: item.question for item in waiting if item.question is not None}
    meant = ask_meant("questions", question_id, pending)
    workspace_id = workspace_with(waiting, meant) or connection.join(cwd).id
    words = answer
    if (question := pending.get(meant)) is not None:
        for text in answer:
            if is_slip(question, text):
                raise Failure(no_choice(question, text), "`longboat questions` lists the choices.")
        words = tuple(word for text in answer for word in texts_in(question, text))
    request = AnswerQuestion(answer=words, client_id=own_name())
    ask = connection.send(calls.answer_question(workspace_id, meant, request))
    click.echo(f"{ask.id} {safe(', '.join(ask.answer))}")


def _list(everywhere: bool, style: str, cwd: str, *, answer: bool = False) -> None:
    where = None if everywhere else cwd
    print_asks(InboxKind.QUESTION, style, where, none="No pending questions.", answer=answer)

"""How each dialog and panel looks at three sizes, in every theme, and with texts that want to act (F2)."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from rich.segment import Segment
from terminal_attacks import GROUPS, PAYLOADS, acting
from textual.events import Paste
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, TextArea
from tui_inbox import some_items
from tui_stage import (
    DIFF,
    SIZES,
    WHEN,
    Stage,
    a_changed_file,
    a_permission,
    a_question,
    a_run,
    a_session,
    an_edit,
    drawn,
    edit_nothing,
    holds,
    nothing,
    picture,
    redo_nothing,
    some_changes,
    some_models,
    some_parts,
    undo_nothing,
)

from longboat.errors import BadInput
from longboat.tui.dialogs.confirm import ConfirmDialog, TextDialog
from longboat.tui.dialogs.diffs import DiffDialog
from longboat.tui.dialogs.export import ExportDialog
from longboat.tui.dialogs.find import FindDialog
from longboat.tui.dialogs.help import DIALOG_HELP, HelpScreen, HelpSection
from longboat.tui.dialogs.inbox import InboxDialog
from longboat.tui.dialogs.models import ModelPicker
from longboat.tui.dialogs.palette import Entry, Palette
from longboat.tui.dialogs.permission import PermissionDialog
from longboat.tui.dialogs.question import QuestionDialog
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.dialogs.setup import KeyDialog, ProviderPicker, SetupModelPicker
from longboat.tui.finding import Hit, find
from longboat.tui.panels.details import ChangesPanel, Figures, ModelPanel, ServersPanel
from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.jobs import JobsPanel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.panels.todos import ClientsPanel, TodosPanel
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import (
    ClientInfo,
    Delivery,
    Message,
    ReasoningPart,
    Role,
    Session,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from longboat.wire.providers import Provider, ProviderCheck
from longboat.wire.review import ChangesPage
from longboat.wire.workspace_state import Job, JobState, LspEvent, McpEvent, TodoItem, TodoState

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


async def few_sessions(text: str) -> list[Session]:
    return [
        a_session(1, title="Mend the rudder", busy=True, cost=1.5),
        a_session(200, title="A new sail, with a title that is longer than a narrow terminal is wide", cost=0.004),
        a_session(3_000, title="Paint", cost=12.25),
    ]


ENTRIES = (
    Entry(id="new", title="New", description="Start a new session", keys="ctrl+n  ctrl+x n"),
    Entry(
        id="retry",
        title="Retry",
        description="Resend a rejected prompt, or retry the last run if it failed",
        keys="ctrl+r",
    ),
    Entry(
        id="review",
        title="/review",
        description="Review the changes as a colleague would, with a long description of it",
    ),
)
HITS = (
    Hit(message_id="m2", label="agent", before="…and then the ", match="rudder", after=" was mended."),
    Hit(message_id="m1", label="you", before="Mend the ", match="rudder", after=""),
)


async def no_more() -> bool:
    return False


def some_providers(text: str = "") -> tuple[Provider, ...]:
    openai, anthropic, mine = (
        Provider(id=name.lower(), name=f"{name}{text}", connected=True, key="required", url="none", problem=text)
        for name in ("OpenAI", "Anthropic", "Mine")
    )
    url = f"http://127.0.0.1:8000/v1{text}"
    return (
        msgspec.structs.replace(openai, source="environment"),
        msgspec.structs.replace(anthropic, connected=False, key_page=f"https://a.example/keys{text}"),
        msgspec.structs.replace(mine, source="stored", key="optional", url="required", base_url=url),
    )


async def check_nothing(api_key: str | None, base_url: str | None) -> ProviderCheck:
    raise NotImplementedError


DIALOGS: dict[str, Callable[[], ModalScreen[object]]] = {
    "permission": lambda: PermissionDialog(a_permission(), asked_by="ada", position=1, of=3),
    "permission-edit": lambda: PermissionDialog(an_edit()),
    "permission-once": lambda: PermissionDialog(a_permission(grant=(), wide=())),
    "permission-parts": lambda: PermissionDialog(
        a_permission(
            title="Run npm test && curl -s x.org > /tmp/log; ls",
            argument="npm test && curl -s x.org > /tmp/log; ls",
            detail="npm test && curl -s x.org > /tmp/log; ls\n\n(in a sandbox)",
            why="/tmp/log is outside the workspace.",
            grant=("write(/tmp/log)", "bash(curl -s x.org)"),
            wide=(),
            parts=some_parts(),
        )
    ),
    "question": lambda: QuestionDialog(a_question()),
    "question-several": lambda: QuestionDialog(a_question(multiple=True)),
    "question-words": lambda: QuestionDialog(a_question(choices=())),
    "sessions": lambda: SessionList(
        few_sessions, rename=nothing, delete=nothing, current="ses_0200", clock=lambda: NOON
    ),
    "inbox": lambda: InboxDialog(some_items(), clock=lambda: NOON),
    "models": lambda: ModelPicker(some_models(), current="openai/gpt-large", effort="low"),
    "palette": lambda: Palette(ENTRIES),
    "find": lambda: FindDialog(lambda words: HITS, no_more, text="rudder"),
    "setup-providers": lambda: ProviderPicker(some_providers()),
    "setup-key": lambda: KeyDialog(some_providers()[1], check_nothing),
    "setup-url": lambda: KeyDialog(some_providers()[2], check_nothing),
    "setup-models": lambda: SetupModelPicker([model for model in some_models().items if model.ready]),
    "confirm": lambda: ConfirmDialog("Delete the session “Paint” and all its messages?", yes="Delete"),
    "text": lambda: TextDialog("Edit the waiting prompt:", text="Paint the boat\nin blue", lines=True),
    "line": lambda: TextDialog("Its new name:", text="Paint"),
    "export": lambda: ExportDialog("Paint", path="paint.md"),
    "help": lambda: HelpScreen(DIALOG_HELP),
    "diff": lambda: DiffDialog(some_changes(), undo_nothing, redo_nothing, edit_nothing),
    "diff-split": lambda: DiffDialog(some_changes(), undo_nothing, redo_nothing, edit_nothing, split=True),
}  # type: ignore[dict-item]


def panels() -> list[Widget]:
    return [
        QueuePanel(),
        ModelPanel(),
        TodosPanel(),
        ChangesPanel(),
        ServersPanel(),
        ClientsPanel(),
        JobsPanel(lambda job_id: None),
        DiffView(DIFF, "src/boat.py"),
    ]


def show_panels(app: Stage, said: Callable[[str], str]) -> None:
    app.query_one(QueuePanel).show(
        [a_run(1, prompt=said("Paint"), delivery=Delivery.STEER, client_id=said("ada")), a_run(2, prompt=said("Sail"))]
    )
    app.query_one(TodosPanel).show(
        [TodoItem(text=said("Look"), state=TodoState.COMPLETED), TodoItem(text=said("Mend"))]
    )
    app.query_one(ModelPanel).show(
        Figures(
            model=said("openai/gpt"), effort="low", context=2_070, window=4_140, usage=Usage(input_tokens=9, cost=0.25)
        )
    )
    app.query_one(ChangesPanel).show(
        [
            a_changed_file(said("src/boat.py"), additions=3, deletions=2),
            a_changed_file("a", additions=1, deletions=0),
        ]
    )
    app.query_one(ServersPanel).show(
        [LspEvent(server=said("pyright"), root=".", state="crashed", detail=said("exit 1"))],
        [McpEvent(server=said("time"), transport="stdio", phase="ready", reason=said("ok"))],
    )
    app.query_one(ClientsPanel).show(
        [ClientInfo(client_id=said("ada"), attached_at=WHEN), ClientInfo(client_id="bob", attached_at=WHEN)], "bob"
    )
    app.query_one(JobsPanel).show(
        [
            Job(id="1", command=said("make"), state=JobState.RUNNING, seconds=4000),
            Job(id="2", command="npm", state=JobState.KILLED, seconds=1, killed_by=said("ada")),
        ]
    )


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", DIALOGS)
async def test_each_dialog_looks_as_in_its_picture(name: str, size: tuple[int, int]) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, DIALOGS[name]())
        await holds(pilot, name)
        assert picture(app).splitlines()[-1].strip()[:1] in ("", "╰"), "the box ends on the screen"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_panels_look_as_in_their_picture(size: tuple[int, int]) -> None:
    app = Stage(*panels())
    async with app.run_test(size=size) as pilot:
        show_panels(app, str)
        await pilot.pause()
        await holds(pilot, "panels")


@pytest.mark.parametrize("name", DIALOGS)
async def test_every_theme_shows_words_that_differ_from_their_background(name: str) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, DIALOGS[name]())
        for theme in (
            "longboat-light",
            "textual-light",
            "textual-dark",
            "ansi-dark",
            "ansi-light",
            "gruvbox",
            "solarized-light",
        ):
            app.theme = theme
            await pilot.pause()
            unseen = [piece.text for piece in pieces(app) if piece.text.strip() and not _is_seen(piece)]
            assert unseen == [], theme


def _is_seen(piece: Segment) -> bool:
    style = piece.style
    return style is not None and (style.color is None or style.color.is_default or style.color != style.bgcolor)


@pytest.mark.parametrize("name", DIALOGS)
async def test_without_colours_there_are_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: only greys are left, and the same words."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = Stage()
    async with app.run_test(size=SIZES[1]) as pilot:
        await app.open(pilot, DIALOGS[name]())
        await holds(pilot, name)
        for piece in (piece for line in drawn(app) for piece in line):
            for color in (piece.style.color, piece.style.bgcolor) if piece.style else ():
                triplet = color.triplet if color is not None else None
                assert triplet is None or triplet.red == triplet.green == triplet.blue


def hostile_diff(text: str) -> str:
    lines = text.split("\n")
    return f"@@ -1,{len(lines)} +1,{len(lines)} @@ {lines[0]}\n" + "".join(f"-{x}\n+{x}\n" for x in lines) + text


def hostile_messages(text: str) -> list[Message]:
    parts = (
        *(TextPart(text=f"said {line}") for line in text.split("\n")),
        ReasoningPart(text=f"e {text}"),
        ToolCallPart(id="c", name=text, input=f"e {text}"),
    )
    return [
        Message(id="m", session_id="s", run_id="r", seq=1, role=Role.ASSISTANT, parts=parts, created_at=WHEN),
        Message(
            id="n",
            session_id="s",
            run_id="r",
            seq=2,
            role=Role.TOOL,
            parts=(ToolResultPart(tool_call_id="c", content=f"e {text}"),),
            created_at=WHEN,
        ),
    ]


def hostile(text: str) -> dict[str, Callable[[], ModalScreen[object]]]:
    """Every place of every dialog into which somebody else's text gets."""
    rules = tuple(text.split("\n"))
    diff = hostile_diff(text)

    async def search(typed: str) -> list[Session]:
        return [a_session(1, title=text), a_session(2, title=text[::-1])]

    async def refuse(*what: str) -> None:
        raise BadInput(text)

    return {
        "permission": lambda: PermissionDialog(
            a_permission(tool=text, title=text, why=text, detail=text, argument=text, grant=rules, wide=rules),
            asked_by=text,
        ),
        "permission-edit": lambda: PermissionDialog(a_permission(detail=diff, argument=text, grant=rules)),
        "permission-parts": lambda: PermissionDialog(a_permission(parts=some_parts(text), more_parts=1)),
        "question": lambda: QuestionDialog(a_question(text=text, choices=rules, descriptions=rules)),
        "question-several": lambda: QuestionDialog(a_question(text=text, choices=rules, multiple=True)),
        "sessions": lambda: SessionList(search, rename=refuse, delete=refuse, clock=lambda: NOON),
        "inbox": lambda: InboxDialog(some_items(text), clock=lambda: NOON),
        "models": lambda: ModelPicker(some_models(problem=text, name=text), current=text, effort=text),
        "palette": lambda: Palette(
            [Entry(id="x", title=text, description=text), Entry(id="y", title="y", description=text)]
        ),
        "find": lambda: FindDialog(lambda words: find(hostile_messages(text), "e"), no_more, text=text),
        "setup-providers": lambda: ProviderPicker(some_providers(text)),
        "setup-key": lambda: KeyDialog(some_providers(text)[1], refuse),
        "setup-url": lambda: KeyDialog(some_providers(text)[2], refuse),
        "setup-models": lambda: SetupModelPicker(some_models(problem=text, name=text).items),
        "confirm": lambda: ConfirmDialog(text),
        "text": lambda: TextDialog(text, text=text, lines=True),
        "line": lambda: TextDialog(text, text=text),
        "export": lambda: ExportDialog(text, path=text),
        "help": lambda: HelpScreen([HelpSection(title=text, rows=tuple((rule, rule) for rule in rules))]),
        "diff": lambda: DiffDialog(
            ChangesPage(items=(a_changed_file(text, diff, hunks=1, by=(text,), undone_by=rules),), complete=True),
            undo_nothing,
            redo_nothing,
            edit_nothing,
        ),
    }  # type: ignore[dict-item]


def pieces(app: Stage) -> list[Segment]:
    return [piece for line in drawn(app) for piece in line]


def test_the_corpus_is_large_enough() -> None:
    assert len(set(PAYLOADS)) >= 40


@pytest.mark.parametrize("name", hostile(""))
async def test_what_others_wrote_is_only_read(name: str) -> None:
    """No control character, no direction override, no markup, no link and no handler gets to the screen."""
    app = Stage()
    async with app.run_test(size=(160, 60)) as pilot:
        for group in GROUPS:
            await app.open(pilot, hostile("\n".join(group))[name]())
            assert acting(pieces(app)) == []
            assert name == "rename" or any(word in picture(app) for word in ("␛", "�", "[", "␇", "`")), picture(app)
            app.screen.end(None)  # type: ignore[attr-defined]
            await pilot.pause()
        assert not app.quitted


async def test_markup_of_others_is_shown_as_it_was_written() -> None:
    text = "[@click=app.quit]press[/] [bold]x[/bold]"
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, ConfirmDialog(text))
        assert text in picture(app)
        await pilot.click("#sentence", offset=(20, 0))
        assert not app.quitted


@pytest.mark.parametrize("group", range(len(GROUPS)))
async def test_panels_and_notices_only_show_what_others_wrote(group: int) -> None:
    text = "\n".join(GROUPS[group])
    app = Stage(*panels())
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        show_panels(app, lambda said: text)
        app.query_one(DiffView).show(hostile_diff(text), text)
        dialog, question = PermissionDialog(a_permission(title=text)), QuestionDialog(a_question(text=text))
        await app.open(pilot, dialog)
        dialog.withdrawn(text, PermissionAnswer.DENY)
        await pilot.pause()
        await app.open(pilot, question)
        question.withdrawn(text, (text,))
        await app.settled(pilot)
        assert len(app.screen_stack) == 1
        assert acting(pieces(app)) == []
        assert "denied" in picture(app)


async def test_what_is_refused_in_the_session_list_and_what_is_pasted_is_only_read() -> None:
    text = "\n".join(PAYLOADS)
    app = Stage()
    async with app.run_test(size=(160, 60)) as pilot:
        await app.open(pilot, hostile(text)["sessions"]())
        await pilot.press("ctrl+r", "x", "enter")
        await app.settled(pilot)
        assert "␛" in picture(app)
        assert acting(pieces(app)) == []
        await pilot.press("delete")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmDialog)
        assert acting(pieces(app)) == []
        await pilot.press("escape")
        for pasted in PAYLOADS:
            app.screen.query_one("#search", Input).post_message(Paste(pasted))
        await app.settled(pilot)
        assert acting(pieces(app)) == []
        await app.open(pilot, TextDialog("Paste:", lines=True))
        app.screen.query_one(TextArea).post_message(Paste(text))
        await app.settled(pilot)
        assert "␛" in picture(app)
        assert acting(pieces(app)) == []

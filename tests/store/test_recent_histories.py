"""Histories in memory: they say what the store says, or they are forgotten."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest

from longboat.store import changes, queries
from longboat.store.changes import (
    change_made,
    concerns_history,
    delete_message,
    delete_session,
    expect_change,
    forget_undone,
    insert_session,
    put_message,
    put_surroundings,
    set_summary,
    touch_session,
    undo_messages,
)
from longboat.store.protocol import Unit, Write
from longboat.store.recent_histories import OVERHEAD, RecentHistories
from longboat.store.records import FileChangeRecord, RevertRecord, SessionHistory
from longboat.wire.models import Message, Role, Session, TextPart

NEW = Session(id="s", workspace_id="w", title="", created_at="now", updated_at="now")
EMPTY = SessionHistory(messages=[], surroundings={}, reverts=(), has_unsettled_changes=False)


def message(seq: int, text: str = "text", *, session_id: str = "s", finished: bool = True) -> Message:
    return Message(
        id=f"{session_id}-{seq}",
        session_id=session_id,
        run_id="r",
        seq=seq,
        role=Role.USER,
        parts=(TextPart(text=text),),
        created_at="now",
        finished_at="now" if finished else None,
    )


def history(*messages: Message) -> SessionHistory:
    return SessionHistory(messages=[*messages], surroundings={}, reverts=(), has_unsettled_changes=False)


def change(author: str | None = None) -> FileChangeRecord:
    return FileChangeRecord(session_id="s", run_id="r", path="/f", before=None, after=b"", pending="key", author=author)


def stored(found: SessionHistory) -> Callable[[], Awaitable[SessionHistory]]:
    async def read() -> SessionHistory:
        return found

    return read


async def never() -> SessionHistory:
    raise AssertionError("it is kept: nothing is read")


def follow(histories: RecentHistories, *writes: Write) -> None:
    histories.follow(Unit(workspace_id="w", writes=writes), committed=True)


async def kept(*messages: Message) -> RecentHistories:
    histories = RecentHistories()
    await histories.get("s", after=0, read=stored(history(*messages)))
    return histories


async def is_kept(histories: RecentHistories, session_id: str = "s", *, after: int = 0) -> bool:
    """Whether it need not be read. Asking changes nothing: what is read here is not finished, and so not kept."""
    other = history(message(99, session_id=session_id, finished=False))
    return await histories.get(session_id, after=after, read=stored(other)) is not other


async def test_what_was_read_once_is_not_read_again() -> None:
    histories = await kept(message(1))
    assert await histories.get("s", after=0, read=never) == history(message(1))


async def test_a_new_session_is_known_from_its_creation() -> None:
    histories = RecentHistories()
    follow(histories, insert_session(NEW))
    assert await histories.get("s", after=0, read=never) == EMPTY


async def test_messages_and_notes_that_are_written_are_added_in_the_order_of_the_transcript() -> None:
    histories = await kept(message(1))
    follow(histories, put_message(message(3)), put_message(message(2)), put_surroundings("s", "r", "Monday"))
    follow(histories, put_message(message(1, "changed")))
    found = await histories.get("s", after=0, read=never)
    assert [*found.messages] == [message(1, "changed"), message(2), message(3)]
    assert found.surroundings == {"r": "Monday"}


async def test_while_a_message_is_being_written_the_store_is_read() -> None:
    """It alone has what was streamed so far."""
    histories = await kept(message(1))
    follow(histories, put_message(message(2, finished=False)))
    assert not await is_kept(histories)
    follow(histories, put_message(message(2, "whole")))
    found = await histories.get("s", after=0, read=never)
    assert [*found.messages] == [message(1), message(2, "whole")]


async def test_while_a_turn_changes_a_file_the_store_is_read() -> None:
    """If the change is never made, a turn must find that out."""
    histories = await kept(message(1))
    follow(histories, expect_change(change()))
    assert not await is_kept(histories)
    follow(histories, change_made("key"))
    assert await is_kept(histories)


@pytest.mark.parametrize(
    "write",
    [
        undo_messages("s", 1, count=1),
        set_summary("s", 1),
        delete_message("s-1"),
        delete_session("s"),
        insert_session(NEW),
        expect_change(change(author="ann")),
        Write("something_new", {"session_id": "s"}),
        Write("something_new", {}),
    ],
    ids=lambda write: str(write.query),
)
async def test_a_write_that_changes_more_makes_it_forget(write: Write) -> None:
    histories = await kept(message(1))
    assert await is_kept(histories)
    follow(histories, write)
    found = await histories.get("s", after=0, read=stored(EMPTY))
    assert found == EMPTY, "it gave what was there before"


async def test_a_write_to_another_session_leaves_it_alone() -> None:
    histories = await kept(message(1))
    follow(histories, put_message(message(1, session_id="other")), set_summary("other", 1), forget_undone("s"))
    follow(histories, touch_session("s", "now"))
    assert await histories.get("s", after=0, read=never) == history(message(1))


async def test_a_unit_that_failed_makes_it_forget_everything() -> None:
    """It may be on disk all the same."""
    histories = await kept(message(1))
    histories.follow(Unit(workspace_id="w", writes=[put_message(message(2))]), committed=False)
    assert not await is_kept(histories)


@pytest.mark.parametrize(
    "write", [put_message(message(2)), put_surroundings("s", "r", "Monday"), undo_messages("s", 1, count=1)]
)
async def test_what_was_read_is_not_kept_if_something_was_written_meanwhile(write: Write) -> None:
    histories = RecentHistories()

    async def read() -> SessionHistory:
        follow(histories, write)
        return history(message(1))

    await histories.get("s", after=0, read=read)
    assert not await is_kept(histories)


async def test_a_read_that_fails_leaves_nothing_behind() -> None:
    histories = RecentHistories()

    async def fail() -> SessionHistory:
        raise OSError

    with pytest.raises(OSError):
        await histories.get("s", after=0, read=fail)
    assert histories._reading == {}
    assert not await is_kept(histories)


async def test_the_part_after_a_summary_is_another_history() -> None:
    histories = await kept(message(1), message(2))
    assert not await is_kept(histories, after=1)


@pytest.mark.parametrize(
    "found",
    [
        history(message(1, finished=False)),
        replace(EMPTY, has_unsettled_changes=True),
        replace(EMPTY, reverts=[RevertRecord(path="/f", remark="", revert_id="v", is_redo=False, told_run=None)]),
    ],
    ids=["open", "unsettled", "reverted"],
)
async def test_a_history_that_more_than_messages_can_change_is_read_each_time(found: SessionHistory) -> None:
    histories = RecentHistories()
    await histories.get("s", after=0, read=stored(found))
    assert not await is_kept(histories)


async def test_sessions_that_were_not_used_for_longest_make_room() -> None:
    size = len(put_message(message(1)).params["parts"]) + 2 * OVERHEAD
    histories = RecentHistories(max_size=2 * size)
    for session_id in ("a", "b"):
        follow(histories, insert_session(msgspec.structs.replace(NEW, id=session_id)))
        follow(histories, put_message(message(1, session_id=session_id)))
    assert await is_kept(histories, "a")  # used last
    follow(histories, insert_session(msgspec.structs.replace(NEW, id="c")))
    assert [await is_kept(histories, session_id) for session_id in "abc"] == [True, False, True]
    for text in ("x" * 10, "x" * 20, "x"):  # new versions take the place of the old ones
        follow(histories, put_message(message(1, text, session_id="a")))
    assert histories._size == sum(each.size for each in histories._kept.values())
    follow(histories, put_message(message(2, "x" * 10_000, session_id="a")))
    assert ([*histories._kept], histories._size) == (["c"], OVERHEAD)


def test_writes_that_leave_histories_alone_touch_none_of_their_tables() -> None:
    """In every dialect. A new write concerns histories until it is listed."""
    tables = re.compile(r"\b(INTO|UPDATE|FROM) (messages|surroundings|file_changes)\b")
    for dialect in ("longboat.store.sqlite", "longboat.store.postgres"):
        known = queries.load_queries(dialect)
        for name in changes._NOT_IN_HISTORY - {"messages_forget"}:  # which deletes what no turn reads
            changed = tables.match(known[name].sql.removeprefix("INSERT ").removeprefix("DELETE "))
            assert changed is None, f"{dialect}: {name}"
        assert re.search(r"undone (!=|<>) 0", known["messages_forget"].sql)
    assert not concerns_history(forget_undone("s"))
    assert concerns_history(Write("something_new", {}))

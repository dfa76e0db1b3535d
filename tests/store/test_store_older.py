"""A store from before times and prices were recorded."""

import sqlite3

from longboat.store.sqlite.migrations import migrate, migrations

AT = "2026-01-02T03:04:05.000000Z"
BEFORE = 8


def older() -> sqlite3.Connection:
    """With one workspace and its sessions: one priced, one not, one of the local model."""
    store = sqlite3.connect(":memory:", isolation_level=None)
    for number, sql in migrations():
        if number < BEFORE:
            store.executescript(f"{sql}\nPRAGMA user_version = {number};")
    store.execute("INSERT INTO workspaces VALUES ('w', '/w', ?)", (AT,))
    for session_id in ("paid", "unpaid", "own"):
        store.execute(
            "INSERT INTO sessions (session_id, workspace_id, title, created_at, updated_at) VALUES (?, 'w', '', ?, ?)",
            (session_id, AT, AT),
        )
    for session_id, model, cost in (("paid", "a/b", 0.5), ("unpaid", "mine/m", 0), ("own", "local/little", 0)):
        store.execute(
            "INSERT INTO spendings VALUES ('w', ?, 'r', '2026-01-02', ?, 1, 10, 5, ?)", (session_id, model, cost)
        )
    store.execute("INSERT INTO tool_uses VALUES ('w', 'paid', '2026-01-02', 'ls', 3, 1)")
    runs = [("r1", "error", AT, None), ("r2", "canceled", None, None), ("r3", "end_turn", AT, "r1")]
    for seq, (run_id, outcome, started_at, folded_into) in enumerate(runs, 1):
        store.execute(
            "INSERT INTO runs (seq, run_id, workspace_id, session_id, state, outcome, delivery, prompt, attachments, "
            "fingerprint, approve, accepted_at, started_at, folded_into) "
            "VALUES (?, ?, 'w', 'paid', 'finished', ?, 'queue', '', '[]', '', 'ask', ?, ?, ?)",
            (seq, run_id, outcome, AT, started_at, folded_into),
        )
    return store


def test_what_was_counted_as_free_is_unknown_unless_it_was_local() -> None:
    store = older()
    migrate(store, "memory")
    assert dict(store.execute("SELECT session_id, unpriced_tokens FROM spendings")) == {
        "paid": 0,
        "unpaid": 15,
        "own": 0,
    }
    assert dict(store.execute("SELECT session_id, unpriced_tokens FROM sessions")) == {
        "paid": 0,
        "unpaid": 15,
        "own": 0,
    }


def test_calls_stay_counted_without_times() -> None:
    store = older()
    migrate(store, "memory")
    found = store.execute("SELECT tool, outcome, count(*), sum(waited_s), max(ran_s) FROM tool_calls GROUP BY 1, 2")
    assert found.fetchall() == [("ls", "done", 2, 0, None), ("ls", "failed", 1, 0, None)]


def test_a_session_says_how_its_last_turn_ended() -> None:
    """Neither a prompt that was canceled in the queue nor one that was folded is a turn."""
    store = older()
    migrate(store, "memory")
    assert dict(store.execute("SELECT session_id, last_outcome FROM sessions")) == {
        "paid": "error",
        "unpaid": None,
        "own": None,
    }

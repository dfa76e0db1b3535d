"""`python -m chaos`: a storm, a summary line, and exit code 1 with the evidence kept if any promise was broken."""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from chaos.evidence import Piece, Violation
from chaos.storm import Result, Settings, storm

SHOWN = 20
CHANGES = (
    ("shell", 202),
    ("undo", 202),
    ("redo", 202),
    ("fork", 202),
    ("import", 201),
    ("delete", 204),
    ("move", 200),
)
"""Kinds of requests that are told of one by one, and the status of those that succeeded."""


def main() -> int:
    settings = _settings()
    # Every exit unwinds the stack, and with it the processes that were started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    home = Path(tempfile.mkdtemp(prefix=f"chaos-{settings.seed}-", dir="/tmp"))  # short enough for a socket
    print(f"chaos: seed {settings.seed}, evidence in {home}", file=sys.stderr, flush=True)
    began = time.monotonic()
    result = asyncio.run(storm(settings, home, report=_report))
    print(summary(settings, result, time.monotonic() - began))
    if not result.violations:
        shutil.rmtree(home)
        return 0
    _keep(result, home)
    for violation in result.violations[:SHOWN]:
        print(f"  {str(violation)[:1000]}")
    store = " CHAOS_STORE=postgresql" if settings.postgresql else ""
    options = f"CHAOS_SEED={settings.seed} CHAOS_NODES={settings.nodes}{store}"
    print(f"  The evidence is in {home}. To repeat: make chaos {options}")
    return 1


def _report(text: str) -> None:
    print(f"\rchaos: {text} ", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def _settings() -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m chaos", description="Kill a server under load, again and again, and check its promises."
    )
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(1_000_000))
    nodes = int(os.environ.get("CHAOS_NODES") or 1)
    store = os.environ.get("CHAOS_STORE") or ("postgresql" if nodes > 1 else "sqlite")
    kills = int(os.environ["CHAOS_KILLS"]) if os.environ.get("CHAOS_KILLS") else None
    seconds = float(os.environ.get("CHAOS_SECONDS") or 60)
    parser.add_argument(
        "--seed", type=int, default=seed, help="seed for the decisions of the clients and the killer (default: random)"
    )
    parser.add_argument("--kills", type=int, default=kills, help="number of servers to kill")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="without --kills, how long to keep killing servers (default: 60)"
    )
    parser.add_argument("--nodes", type=int, default=nodes, help="number of servers on one PostgreSQL (default: 1)")
    parser.add_argument(
        "--store",
        choices=["sqlite", "postgresql"],
        default=store,
        help="where a single server keeps its sessions (default: sqlite)",
    )
    given = parser.parse_args()
    return Settings(
        seed=given.seed,
        kills=given.kills,
        seconds=given.seconds,
        nodes=given.nodes,
        postgresql=given.nodes > 1 or given.store == "postgresql",
    )


def summary(settings: Settings, result: Result, seconds: float) -> str:
    evidence = result.evidence
    statuses = Counter((each.kind, each.status) for each in evidence.exchanges)
    ends = _counted(result.ends)
    others = f"; {_counted(result.others)}" if result.others else ""
    takeovers = sum(len(workspace.takeovers) for workspace in evidence.workspaces)
    events = sum(len(workspace.log) for workspace in evidence.workspaces)
    runs = sum(len(workspace.last_runs()) for workspace in evidence.workspaces)
    asks = sum(len(list(each.of_type("permission_request", "question_request"))) for each in evidence.workspaces)
    commands = sum(effect.what == "begin" for workspace in evidence.workspaces for effect in workspace.effects)
    cancels = sum(statuses[kind, 200] for kind in ("cancel_run", "cancel_session", "clear"))
    changes = ", ".join(f"{statuses[kind, status]} {kind}s" for kind, status in CHANGES)
    return (
        f"chaos: {result.ends.total()} servers ended ({ends}{others}) in {seconds:.0f} s, seed {settings.seed}: "
        f"{len(evidence.exchanges)} requests, {takeovers} takeovers, {runs} runs, {cancels} cancels, "
        f"{asks} asks, {commands} commands, {changes}, {events} events: "
        f"{len(result.violations)} violations{_by_promise(result.violations)}"
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in counts.items())


def _by_promise(violations: list[Violation]) -> str:
    counts = Counter(violation.promise for violation in violations)
    return "".join(f"; {count} × {promise}" for promise, count in counts.most_common())


def _keep(result: Result, home: Path) -> None:
    """Beside the store and the logs: what was found, what the clients did, what the log says."""
    (home / "violations.txt").write_text("".join(f"{violation}\n\n" for violation in result.violations))
    _write_lines(home / "requests.jsonl", result.evidence.exchanges)
    for workspace in result.evidence.workspaces:
        _write_lines(home / f"log-{workspace.name}.jsonl", workspace.log)
        _write_lines(home / f"ledger-{workspace.name}.jsonl", workspace.ledger)
        _write_lines(home / f"readers-{workspace.name}.jsonl", [_told(each) for each in workspace.readers.items()])
        transcripts = msgspec.json.format(msgspec.json.encode(workspace.transcripts))
        (home / f"transcripts-{workspace.name}.json").write_bytes(transcripts)


def _told(reader: tuple[str, list[Piece]]) -> dict[str, object]:
    name, pieces = reader
    return {"reader": name, "pieces": [[piece.after, *(seen.cursor for seen in piece.seen)] for piece in pieces]}


def _write_lines(file: Path, values: Sequence[object]) -> None:
    file.write_bytes(b"".join(msgspec.json.encode(value) + b"\n" for value in values))


if __name__ == "__main__":
    sys.exit(main())

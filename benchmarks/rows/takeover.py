"""kill -9 of the owner in the middle of a run → the first event of the next owner, at a client of another node."""

import os
import signal
import statistics
import time
import urllib.request

from benchmarks.fleet import cluster, postgres, through
from benchmarks.harness import Row, milliseconds, scratch, scripted_endpoint
from longboat.testing import Hang, Say, encode_script

ROUNDS = 5
LEASE_S, MORE_S = 3.0, 1.0


def measure() -> list[Row]:
    with scripted_endpoint() as url:
        script = encode_script([[Say("I begin"), Hang()]], name="hang", repeat=True)
        urllib.request.urlopen(f"{url}/control/script", data=script).close()
        taken = [_take_over(f"{url}/v1") for _ in range(ROUNDS)]
    return [
        Row(
            work=f"kill -9 of the owner → the first event of the next one, lease of {LEASE_S:g} s",
            floor="–",
            longboat=milliseconds(statistics.median(taken)),
            score="–",
            spread=f"{milliseconds(min(taken))}–{milliseconds(max(taken))}",
            bound=f"≤ {LEASE_S + MORE_S:g} s",
            passed=max(taken) <= LEASE_S + MORE_S,
        )
    ]


def _take_over(base_url: str) -> float:
    with (
        postgres() as database,
        scratch() as shared,
        cluster(base_url, database.new(), 2, lease_s=LEASE_S, shared_trees=[str(shared)]) as (home, other),
    ):
        owner = home.opened(shared / "work")
        with through(other, owner).subscriber() as events:
            body = {"session_id": owner.new_session(), "prompt": "[[hang]]"}
            owner.wire.ask("POST", f"{owner.workspace}/agent", body)
            events.wait_for(b'"text":"I begin"')
            start = time.perf_counter()
            os.kill(owner.pid, signal.SIGKILL)
            events.wait_for(b"\nevent: ")
            return time.perf_counter() - start

"""A long queue: accepting a prompt behind it, and what its cancel does to other clients."""

import threading
import time
import urllib.request

from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, scripted_endpoint, transposed
from benchmarks.wires import Wire, request
from longboat.testing import Hang, Say, encode_script

SHORT, LONG = 10, 10_000
ROUNDS, SAMPLES = 5, 40
QUIET_S = 0.005
"""Before each sample: what the one before set off has ended."""
HELD_UP_MS = 50.0


def measure() -> list[Row]:
    with scripted_endpoint() as url, longboat(f"{url}/v1") as server:
        script = encode_script([[Say("I begin"), Hang()]], name="hang", repeat=True)
        urllib.request.urlopen(f"{url}/control/script", data=script).close()
        short, long = _busy(server, SHORT), _busy(server, LONG)
        pairs = [(_accept(server, short), _accept(server, long)) for _ in range(ROUNDS * SAMPLES)]
        accept = compare(
            f"POST prompt → 202 behind {LONG:,} queued, floor: {SHORT}, p50",
            transposed(pairs, SAMPLES),
            milliseconds,
            at_most=2,
        )
        return [accept, _held_up(server, long)]


def _busy(server: RunningServer, queued: int) -> str:
    """A session whose turn does not end, with so many prompts behind it."""
    session = server.new_session()
    for prompt in ("[[hang]]", *(f"prompt {number}" for number in range(queued))):
        _post(server, session, prompt)
    return session


def _post(server: RunningServer, session: str, prompt: str) -> None:
    body = {"session_id": session, "prompt": prompt, "delivery": "queue"}
    server.wire.ask("POST", f"{server.workspace}/agent", body)


def _accept(server: RunningServer, session: str) -> float:
    time.sleep(QUIET_S)
    start = time.perf_counter()
    _post(server, session, "How do I sort a list of dictionaries by two keys?")
    return time.perf_counter() - start


def _held_up(server: RunningServer, session: str) -> Row:
    """The longest answer to another client, from the cancel until the last run has ended."""
    status = f"{server.workspace}/agent/sessions/{session}"
    taken: list[float] = []
    over = threading.Event()

    def ask_again_and_again() -> None:
        sent = request("GET", f"{server.workspace}/agent")
        with Wire(server.socket) as wire:
            while not over.is_set():
                start = time.perf_counter()
                wire.send(sent)
                wire.answer()
                taken.append(time.perf_counter() - start)
                time.sleep(0.001)

    other = threading.Thread(target=ask_again_and_again)
    other.start()
    canceled = server.wire.ask("POST", f"{status}/cancel")["canceled"]
    answered = len(taken)
    while server.wire.ask("GET", f"{server.workspace}/runs/{canceled[-1]}")["state"] != "finished":
        time.sleep(0.01)
    over.set()
    other.join()
    longest = max(taken)
    return Row(
        work=f"cancel of {len(canceled):,} queued: longest GET of another client meanwhile",
        floor="–",
        longboat=milliseconds(longest),
        score="–",
        spread=f"until it was answered {milliseconds(max(taken[: answered + 1]))}",
        bound=f"≤ {HELD_UP_MS:g} ms",
        passed=longest * 1000 <= HELD_UP_MS,
    )

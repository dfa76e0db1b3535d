"""Full-text search on the page: hits among 10,000 messages on the screen, against a store with nothing in it."""

import sys

from benchmarks.chromium import Door, door, how, missing
from benchmarks.harness import Row, compare, line_of, longboat, milliseconds, process

ROUNDS = 9
MESSAGES = 10_000
WORDS = "weigh"
"""In every second one of them."""

# From the letter typed to the frame with what was found, or with the word that nothing was.
SEARCHED = """async (words) => {
  const field = document.getElementById('session-search');
  const results = document.querySelector('.results');
  const before = performance.now();
  field.value = words;
  field.dispatchEvent(new Event('input'));
  const isThere = () => !results.hidden && (results.querySelector('.hits li')
    || results.textContent.includes('No matching messages'));
  while (!isThere()) await new Promise((resolve) => requestAnimationFrame(resolve));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return (performance.now() - before) / 1000;
}"""


def measure() -> list[Row]:
    if missing("chromium"):
        print(f"left out: {how('chromium')}", file=sys.stderr)
        return []
    with process("-m", "benchmarks.clocked") as endpoint:
        base_url = f"{line_of(endpoint)}/v1"
        floors, ours = (_searches(base_url, messages) for messages in (0, MESSAGES))
    work = f"page: search over {MESSAGES:,} messages, from the letter to the hits; floor: in an empty store"
    return [compare(work, list(zip(floors, ours, strict=True)), milliseconds, at_most=2)]


def _searches(base_url: str, messages: int) -> list[float]:
    with longboat(base_url) as server, door(server) as at:
        session_id = at.session_of(messages) if messages else server.new_session()
        return [_searched(at, at.address(session_id)) for _ in range(ROUNDS + 1)][1:]


def _searched(at: Door, address: str) -> float:
    with at.guest() as page:
        page.goto(address)
        page.wait_for_selector(".connection[data-state=live]")
        return float(page.evaluate(SEARCHED, WORDS))

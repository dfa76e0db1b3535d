"""The review of changes on the web page: what 500 changed files cost against 5."""

import sys

from benchmarks.chromium import Door, door, how, missing, spent
from benchmarks.harness import Row, compare, line_of, longboat, milliseconds, process

ROUNDS = 5
FEW, MANY = 5, 500
STEPS, STEP_PX = 40, 250

SCROLL = """async ([steps, px]) => {
  const scroller = document.querySelector('.review-list');
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  for (let step = 0; step < steps; step += 1) {
    scroller.scrollTop += px;
    await frame();
    await frame();
  }
}"""


def measure() -> list[Row]:
    if missing("chromium"):
        print(f"left out: {how('chromium')}", file=sys.stderr)
        return []
    with (
        process("-m", "benchmarks.clocked") as endpoint,
        longboat(f"{line_of(endpoint)}/v1") as server,
        door(server) as at,
    ):
        few, many = (f"{at.address(at.session_that_changed(number))}/changes" for number in (FEW, MANY))
        rounds = [(_reviewed(at, few), _reviewed(at, many)) for _ in range(ROUNDS + 1)][1:]
    opened = [(one[0], other[0]) for one, other in rounds]
    scrolled = [(one[1], other[1]) for one, other in rounds]
    told = f"page: review of {MANY} changed files, floor: {FEW}"
    return [
        compare(f"{told}; the first diff on the screen", opened, milliseconds, at_most=2),
        compare(f"{told}; CPU to scroll {STEPS * STEP_PX:,} px", scrolled, milliseconds, at_most=1.5),
    ]


def _reviewed(at: Door, address: str) -> tuple[float, float]:
    """When the first diff stood there, and the CPU time to scroll."""
    with at.guest() as page:
        cdp = page.context.new_cdp_session(page)
        cdp.send("Performance.enable")
        page.goto(address)
        shown = page.wait_for_function("() => document.querySelector('.review table.diff') && performance.now() / 1000")
        page.wait_for_selector(".connection[data-state=live]")
        before = spent(cdp)["ProcessTime"]
        page.evaluate(SCROLL, [STEPS, STEP_PX])
        return float(shown.json_value()), spent(cdp)["ProcessTime"] - before

"""Every node is replaced under load (G9): no accepted run is lost, and no event is missed."""

import pytest
from cluster import open_fleet
from load import open_load

pytestmark = pytest.mark.acceptance

NAMES = ("a", "b", "c")


async def test_g9_while_one_node_after_another_is_replaced_no_run_is_lost_and_no_event_is_missed() -> None:
    """One directory that all have, and one on a single node: that node's runs wait for it."""
    async with open_fleet(*NAMES) as fleet, open_load(fleet, home="b"):
        for name in NAMES:
            fleet[name].server.terminate()
            assert await fleet[name].server.wait() == 0
            await fleet[name].serve()

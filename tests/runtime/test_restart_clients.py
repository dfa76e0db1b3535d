"""B6 as clients see it: their cursors, their claims and their terminal events across a crash and the next start."""

from pathlib import Path

from crash import crashed, restarted, streamed
from mirror import Mirror, number_of
from running_app import launch, watch

from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.wire.models import Outcome


async def test_a_waiting_client_gets_its_terminal_event_through_its_old_cursor(tmp_path: Path) -> None:
    """Replay across the restart: everything it missed, in order, without a resync; its copy is then the server's."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("half"), Pause(gate)]])) as running:
        await running.submit("one", "r1")
        await running.submit("two", "r2")
        await running.watcher.in_state("r2", "queued")
        await streamed(running, "half")
        known = list(running.watcher.events)
        async with restarted(running, ScriptedModel.echo()) as again:
            await again.workspace.run("r2", wait_s=60)
            for place in range(1, len(known)):
                async with watch(again.workspace, after=known[place].cursor) as late:
                    await late.completed("r2")
                assert number_of(late.events[0].cursor) == number_of(known[place].cursor) + 1
                assert [complete.run_id for complete in late.of("run_complete")] == ["r1", "r2"]
            mirror = Mirror.of(known[0].payload)
            for event in [*known[1:], *late.events]:
                mirror.apply(event)
            async with watch(again.workspace) as fresh:
                snapshot = (await fresh.until(lambda event: event.type == "snapshot")).payload
            assert mirror == Mirror.of(snapshot)


async def test_a_cursor_of_an_event_that_the_crash_lost_brings_a_resync(tmp_path: Path) -> None:
    """A power cut may take unsynced deltas: their numbers are used again, in another epoch, for other events."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("kept"), Pause(gate), Say("lost")]])) as running:
        await running.submit("one", "r1")
        await streamed(running, "kept")
        kept = running.watcher.events[-1].cursor
        place = await crashed(running)
        gate.open()
        await running.completed("r1")
        lost = running.watcher.events[-1].cursor
        async with launch(place, ScriptedModel.echo(), session_id=running.session_id) as again:
            for run_id in ("r2", "r3"):
                await again.submit("more", run_id)
                await again.workspace.run(run_id, wait_s=60)
            assert number_of(again.watcher.events[-1].cursor) > number_of(lost)
            async with watch(again.workspace, after=lost) as late:
                await late.until(lambda event: event.type == "snapshot")
            assert [event.type for event in late.events[:2]] == ["resync", "snapshot"]
            async with watch(again.workspace, after=kept) as late:
                assert (await late.completed("r1")).outcome is Outcome.INTERRUPTED
            assert late.of("resync") == []


async def test_clients_of_the_dead_server_are_detached(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running, watch(running.workspace, client_id="ghost") as ghost:
        await ghost.until(lambda event: event.type == "snapshot")
        last = ghost.events[0].payload.cursor
        async with restarted(running, ScriptedModel.echo()) as again:
            async with watch(again.workspace, after=last) as late:
                await late.until(lambda event: event.type == "client" and event.change == "created")
            left = [event.payload.client_id for event in late.events if event.change == "deleted"]
            assert sorted(left) == ["ghost", "watcher"]
            clients = (await again.workspace.describe()).clients
            assert [client.client_id for client in clients] == ["watcher"]

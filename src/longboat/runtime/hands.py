"""The hands of a turn: they make the calls of an answer, round by round.

Owns the round that is being made, and notices when the same is done over and over. Must not know models or the rest of
the turn.
"""

from collections.abc import Callable
from pathlib import Path

from longboat.core.turn import LoopGuard
from longboat.errors import ModelError
from longboat.runtime.clock import now
from longboat.runtime.home import Home
from longboat.runtime.host import Host
from longboat.runtime.outbox import Outbox
from longboat.runtime.outfit import Outfit
from longboat.runtime.round import Round, Slot, groups
from longboat.runtime.toolbox import Toolbox
from longboat.store.rows import RunRecord
from longboat.tasks import together
from longboat.wire.models import Message, ToolCallPart


class Hands:
    def __init__(
        self,
        home: Home,
        host: Host,
        record: RunRecord,
        outbox: Outbox,
        *,
        heed_stop: Callable[[], None],
        problem: Callable[[str], None],
    ) -> None:
        """`heed_stop` raises where the turn is to do nothing new; `problem` tells people of what goes wrong."""
        self._home = home
        self._host = host
        self._record = record
        self._outbox = outbox
        self._heed_stop = heed_stop
        self._problem = problem
        self._loop_guard = LoopGuard()
        self.round: Round | None = None
        self.told: set[Path] = set()
        """Instructions of files below the workspace that the model has read in this turn."""

    async def make(self, calls: list[ToolCallPart], message: Message, outfit: Outfit, *, new: bool) -> Message:
        """The message of the results, finished. `new`: nobody has seen it yet; else a restart came in between."""
        made = self.round = Round(message, self._outbox, new=new)
        toolbox = Toolbox(home=self._home, record=self._record, outfit=outfit, told=self.told, problem=self._problem)
        for group in groups(calls):
            self._heed_stop()
            pairs = zip(made.begin(*group), group, strict=True)
            await together([self._see_call(toolbox, slot, call) for slot, call in pairs])
        results = made.finish(now())
        self.round = None
        return results

    async def _see_call(self, toolbox: Toolbox, slot: Slot, call: ToolCallPart) -> None:
        result = await toolbox.call(call, slot)
        slot.put(result)
        self._host.add_call(call.name, failed=result.is_error)
        if self._loop_guard.is_loop(call, result):
            raise ModelError(
                f"The same call of {call.name} gave the same result again and again. Say what to do differently.",
                title="Stopped: the agent went round in circles",
                code="loop_detected",
            )

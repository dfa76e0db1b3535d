"""The transcript view: a bounded window of message widgets over the mirror's messages. Reads older pages on demand.

Owns which messages have widgets and the scroll position. Must not know the server: pages come through a callable.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic, process_time

from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from longboat.client import Transcript
from longboat.tui.messages import AnswerView, Folding, MessageContext, MessageView, Note, PromptView, Thought, view_of
from longboat.tui.toolcard import WAITING, ToolCard
from longboat.wire.asks import CallAnswer
from longboat.wire.models import Message, Role, ToolResultPart

MOUNTED = 60
"""The most messages with widgets."""
STEP = 20
"""Messages that get widgets at a time."""
EDGE = 3
"""Within this many lines of an end counts as being there."""
FRAME_S = 1 / 12
"""The shortest time between two redraws of streamed text."""
SHARE = 3
"""If drawing is slow, wait this many times the CPU time of the last redraw, so that keys are still handled. CPU time,
not elapsed time: a busy machine should not slow the app down further."""
SLOWEST_S = 0.5
NOTES = 20

Older = Callable[[], Awaitable[bool]]
"""Reads the next older page into the transcript; returns False if there is none."""


class TranscriptView(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    TranscriptView {
        height: 1fr; padding: 1 1 0 1; scrollbar-size-vertical: 1;
        & > #tail { height: auto; }
    }
    """

    def __init__(
        self, *, by: Callable[[str], str], other: Callable[[str], str], older: Older, drawn: Callable[[], None]
    ) -> None:
        """`drawn` is called when there may be cards that were not there before."""
        self.tail = Vertical(id="tail")
        """The widgets below the newest message."""
        super().__init__(self.tail, id="transcript")
        self._around = MessageContext(cards={}, results={}, remarks={}, folding=Folding(), by=by, other=other)
        self._older = older
        self._drawn = drawn
        self._transcript = Transcript()
        self._views: dict[str, MessageView] = {}
        """The widgets, by message id. They cover consecutive messages, without gaps."""
        self._complete = True
        """Whether the newest message has a widget."""
        self._dirty: dict[str, None] = {}
        self._scheduled = False
        self._next = 0.0
        """The earliest time of the next redraw, on the monotonic clock."""
        self._moving = False
        self._kept: Widget | None = None
        """The message that was looked for. It stays in view while those around it get their height, until the reader
        scrolls."""
        self._keeping = False
        self._changing = asyncio.Lock()
        """Held while changing which messages have widgets."""

    def on_mount(self) -> None:
        self.anchor()

    @property
    def mounted(self) -> int:
        return len(self._views)

    @property
    def at_end(self) -> bool:
        return self._complete and self.max_scroll_y - self.scroll_y <= EDGE

    def card(self, run_id: str, call_id: str) -> ToolCard | None:
        return self._around.cards.get((run_id, call_id))

    def cards(self, run_id: str) -> list[ToolCard]:
        return [card for (run, _), card in self._around.cards.items() if run == run_id]

    @property
    def all_cards(self) -> list[ToolCard]:
        return [card for card in self.query(ToolCard) if card.is_attached]

    # -- places

    @property
    def newest_shown(self) -> MessageView | None:
        return next(reversed(self._views.values()), None)

    async def neighbour(self, message_id: str, step: int) -> MessageView | None:
        """The message before (-1) or after (1) another one, with a widget; None at an end."""
        for grow in (None, self._go_up if step < 0 else self._go_down):
            if grow is not None:
                async with self._changing:
                    await grow()
            views = list(self._views.values())
            at = next((place for place, view in enumerate(views) if view.message.id == message_id), -1)
            if at >= 0 and 0 <= at + step < len(views):
                return views[at + step]
        return None

    async def reveal(self, message_id: str) -> MessageView | None:
        """Give a message a widget, if it is in the transcript, and scroll to it."""
        async with self._changing:
            if message_id not in self._views:
                shown = self._shown_messages()
                at = next((place for place, message in enumerate(shown) if message.id == message_id), None)
                if at is None:
                    return None
                await self._remove(list(self._views.values()))
                window = shown[max(0, at - STEP) : at + STEP]
                self._complete = window[-1] is shown[-1]
                await self._mount(window)
        view = self._views.get(message_id)
        if view is not None:
            self.call_after_refresh(self._keep_in_view, view)
        return view

    def bring_into_view(self, view: Widget, *, immediate: bool = False) -> None:
        if view.is_attached and not self.region.contains_region(view.region):
            self.release_anchor()
            is_high = view.size.height >= self.size.height
            self.scroll_to_widget(view, animate=False, top=is_high, force=True, immediate=immediate)

    def _keep_in_view(self, view: Widget) -> None:
        self._kept, self._keeping = view, True
        self.bring_into_view(view, immediate=True)
        self._keeping = False

    def _keep_further(self) -> None:
        if self._kept is not None:
            self._keep_in_view(self._kept)

    def watch_virtual_size(self) -> None:
        if self._kept is not None:
            self.call_after_refresh(self._keep_further)

    @property
    def expanded(self) -> bool:
        """Whether tool calls and reasoning are shown in full."""
        return self._around.folding.expanded

    def expand_all(self, *, expanded: bool) -> None:
        """Expand or collapse everything, also what gets a widget later."""
        self._around.folding.expanded = expanded
        for part in [*self.query(ToolCard), *self.query(Thought)]:
            part.set_expanded(expanded=expanded)

    # -- content

    async def show(self, transcript: Transcript) -> None:
        """Show the end of a transcript, another one or the same again."""
        async with self._changing:
            await self._show(transcript)
        self.anchor()
        self.call_after_refresh(self._fill)

    async def _show(self, transcript: Transcript) -> None:
        self._transcript, self._complete = transcript, True
        self._dirty.clear()
        self._views.clear()
        self._around.cards.clear()
        self._around.results.clear()
        self._take_results(transcript.messages)
        with self.app.batch_update():
            await self.query_children("PromptView, AnswerView, Note").remove()
            await self._mount(self._shown_messages()[-STEP:])

    def touch(self, message_id: str) -> None:
        """Redraw a changed, new or removed message soon, together with others that change until then."""
        self._dirty[message_id] = None
        if not self._scheduled:
            self._scheduled = True
            # Not a Textual timer: one that is late when it starts never fires, and nothing would be redrawn.
            soon = max(0.001, self._next - monotonic())
            asyncio.get_running_loop().call_later(soon, self.call_next, self._draw)

    def redraw_prompt(self, run_id: str) -> None:
        """Redraw the prompt of a run, because the remark on it has changed."""
        for view in self._views.values():
            if isinstance(view, PromptView) and view.message.run_id == run_id:
                view.show(view.message)

    def describe_answers(self, *answers: CallAnswer) -> str:
        """A remark on who allowed or denied a call, or answered its question."""
        told = (
            answer.describe(mine=bool(answer.answered_by) and not self._around.other(answer.answered_by or ""))
            for answer in answers
        )
        return ", ".join(dict.fromkeys(told))

    def remark(self, run_id: str, call_id: str, words: str) -> None:
        """Set the remark on a call, whether it is on the screen or not."""
        self._around.remarks[run_id, call_id] = words
        if card := self.card(run_id, call_id):
            card.note(words)

    def end_run(self, run_id: str) -> None:
        """Mark the calls of a run as ended."""
        for card in self.cards(run_id):
            card.end()

    def add_note(self, note: Note) -> None:
        notes = self.query_children(Note).nodes
        if len(notes) >= NOTES:
            notes[0].remove()
        self.mount(note, before=self.tail)

    async def _draw(self) -> None:
        began, used = monotonic(), process_time()
        self._next = began + FRAME_S
        async with self._changing:
            await self._draw_dirty()
        self._drawn()
        self.call_after_refresh(self._set_next_frame, began, used)

    def _set_next_frame(self, began: float, used: float) -> None:
        self._next = began + min(max(FRAME_S, SHARE * (process_time() - used)), SLOWEST_S)

    async def _draw_dirty(self) -> None:
        self._scheduled = False
        dirty, self._dirty = list(self._dirty), {}
        added: list[Message] = []
        for message_id in dirty:
            message, view = self._transcript.find(message_id), self._views.get(message_id)
            if message is None:
                await self._remove([] if view is None else [view])
            elif message.role is Role.TOOL:
                self._show_results(message)
            elif view is not None:
                view.show(message)
            elif self._complete and message.seq > self._last:
                added.append(message)
        if added:
            await self._mount(sorted(added, key=lambda message: message.seq))
            if self.at_end and len(self._views) > MOUNTED:
                await self._remove(list(self._views.values())[: len(self._views) - MOUNTED + STEP])

    # -- the window

    @property
    def _first(self) -> int:
        return next((view.message.seq for view in self._views.values()), 0)

    @property
    def _last(self) -> int:
        return next((view.message.seq for view in reversed(self._views.values())), -1)

    def _shown_messages(self) -> list[Message]:
        return [message for message in self._transcript.messages if message.role is not Role.TOOL]

    async def _mount(self, messages: list[Message], *, on_top: bool = False) -> None:
        """Add widgets for messages next to the window."""
        views = {message.id: view for message in messages if (view := view_of(message, self._around)) is not None}
        first = next(iter(self._views.values()), self.tail)
        self._views = views | self._views if on_top else self._views | views
        if views:
            await self.mount_all(views.values(), before=first if on_top else self.tail)
            self._drawn()

    async def _remove(self, views: list[MessageView]) -> None:
        for view in views:
            self._views.pop(view.message.id, None)
            if isinstance(view, AnswerView):
                view.leave()
        if views:
            await self.remove_children(views)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._keeping:
            self._kept = None
        if self._moving or not self._views:
            return
        if new_value <= EDGE and new_value < old_value:
            self._move(self._go_up)
        else:
            self._look_down()

    def _look_down(self) -> None:
        """Add widgets below if the reader is near the end of the window."""
        if not self._moving and not self._complete and self.max_scroll_y - self.scroll_y <= EDGE:
            self._move(self._go_down)

    def _fill(self) -> None:
        """Add older messages if the screen is not full: the reader could not scroll up to load them."""
        if self._views and self.virtual_size.height <= self.size.height and not self._moving:
            self._move(self._go_up)

    def _move(self, how: Callable[[], Awaitable[None]]) -> None:
        self._moving = True
        self.run_worker(self._moved(how), name="window")

    async def _moved(self, how: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self._changing:
                await how()
        finally:
            self._moving = False
        self.call_after_refresh(self._look_down)  # scrolling was ignored meanwhile

    async def _go_up(self) -> None:
        older = [message for message in self._shown_messages() if message.seq < self._first][-STEP:]
        if not older and await self._older():
            self._take_results(self._transcript.messages)
            older = [message for message in self._shown_messages() if message.seq < self._first][-STEP:]
        if not older:
            return
        views = list(self._views.values())
        await self._keeping_place(views[0], lambda: self._mount(older, on_top=True))
        if len(self._views) > MOUNTED and not self.at_end:
            self._complete = False
            await self._remove(list(self._views.values())[MOUNTED:])

    async def _go_down(self) -> None:
        newer = [message for message in self._shown_messages() if message.seq > self._last]
        await self._mount(newer[:STEP])
        self._complete = len(newer) <= STEP
        views = list(self._views.values())
        if len(views) > MOUNTED:
            kept = views[-1]
            await self._keeping_place(kept, lambda: self._remove(views[: len(views) - MOUNTED]))

    async def _keeping_place(self, view: Widget, change: Callable[[], Awaitable[None]]) -> None:
        """Make a change above a widget without moving it on the screen."""
        before = view.virtual_region.y
        await change()

        def settle() -> None:
            moved = view.virtual_region.y - before
            if moved:
                self.scroll_to(y=self.scroll_y + moved, animate=False, force=True)

        self.call_after_refresh(settle)

    async def newest(self) -> None:
        """Jump to the end, wherever the window is."""
        if not self._complete:
            await self.show(self._transcript)
        self.anchor()
        self.scroll_end(animate=False)

    # -- results

    def _take_results(self, messages: list[Message]) -> None:
        for message in messages:
            for part in message.parts if message.role is Role.TOOL else ():
                if isinstance(part, ToolResultPart):
                    key = message.run_id, part.tool_call_id
                    self._around.results[key] = part
                    # A running call may ask again; then "waiting" is the current remark.
                    if part.answers and (part.finished or self._around.remarks.get(key) != WAITING):
                        self._around.remarks[key] = self.describe_answers(*part.answers)

    def _show_results(self, message: Message) -> None:
        self._take_results([message])
        for part in message.parts:
            if isinstance(part, ToolResultPart) and (card := self.card(message.run_id, part.tool_call_id)):
                card.show_result(part)
                if part.answers:
                    card.note(self._around.remarks[message.run_id, part.tool_call_id])

"""How a decision changes the session's own row: its title, its usage, when it changed, whether it is busy.

Owns the order of these changes. Must not know what the runs do.
"""

from collections.abc import Iterable, Mapping

import msgspec

from longboat.core.effects import Effect, PromptWithdrawn
from longboat.runtime.booking import Booking
from longboat.runtime.tally import Tally
from longboat.store.protocol import Write
from longboat.wire.events import Change
from longboat.wire.models import Message, Session, Usage

TITLE_LENGTH = 80


def enter(
    booking: Booking,
    session: Session,
    effects: Iterable[Effect],
    used: Tally,
    *,
    busy: tuple[bool, bool],
    folded: Mapping[str, Message],
) -> Session:
    """Fill the booking with the effects and what was used; returns the session as it will be.

    `busy`: before and after. `folded`: the messages of prompts that were folded, which may be withdrawn.
    """
    before, after = busy
    named = _with_usage(booking, session, used)
    if after and not before:
        named = msgspec.structs.replace(named, updated_at=booking.at)
        booking.add(Write("session_touch", {"session_id": session.id, "updated_at": booking.at}, rows=1))
    told = session
    if before and not after:
        # Told before the terminal event: who has seen that may rely on everything else.
        told = named
        booking.tell(Change.UPDATED, msgspec.structs.replace(named, busy=False))
    for effect in effects:
        if isinstance(effect, PromptWithdrawn):
            booking.withdraw(folded[effect.run_id])
        booking.book(effect)
    if (title := _title(named, booking)) is not None:
        named = msgspec.structs.replace(named, title=title, updated_at=booking.at)
        booking.add(title_write(named))
    if named is not told or (after and not before):
        booking.tell(Change.UPDATED, msgspec.structs.replace(named, busy=after))
    return named


def _with_usage(booking: Booking, session: Session, used: Tally) -> Session:
    if (usage := used.usage) != Usage():
        context = session.context_tokens if used.context is None else used.context
        session = msgspec.structs.replace(
            session, usage=session.usage + usage, context_tokens=context, updated_at=booking.at
        )
        booking.add(usage_write(session, usage))
    for write in used.writes(session, booking.at):
        booking.add(write)
    return session


def _title(session: Session, booking: Booking) -> str | None:
    """A session without a title takes its first prompt's first line; the small model may find a better one."""
    first = next((booking.record(run_id) for run_id in booking.prompts), None)
    if first is None or (session.title and (first.options.shell is not None or not session.title.startswith("!"))):
        return None  # one that began with a person's command is named after the first prompt
    prompt = first.run.prompt.strip()
    return prompt.splitlines()[0][:TITLE_LENGTH].strip() if prompt else "Attachment"


def title_write(session: Session) -> Write:
    params = {"session_id": session.id, "title": session.title, "updated_at": session.updated_at}
    return Write("session_title", params, rows=1)


def usage_write(session: Session, used: Usage) -> Write:
    told = {"updated_at": session.updated_at, "context_tokens": session.context_tokens}
    params = {"session_id": session.id, **told, **msgspec.structs.asdict(used)}
    return Write("session_usage", params, rows=1)

"""What was learned of a chat server and its model while using them. `models/memory.py` owns the file."""

from pathlib import Path

import msgspec

from longboat.models.memory import CHAT_HABITS, ModelMemory
from longboat.models.openai_request import SendReasoning


class ChatHabits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    send_reasoning: SendReasoning | None = None
    """Which reasoning the server wants back; None: it has taken what it got."""
    begins_in_thought: bool = False
    """Its answers begin with thoughts that no tag opens."""
    refused: tuple[str, ...] = ()
    """The optional fields of a request that it does not know."""


UNKNOWN = ChatHabits()


class ChatMemory(ModelMemory[ChatHabits]):
    def __init__(self, data_dir: Path, *, address: str, model: str) -> None:
        super().__init__(data_dir / "models" / CHAT_HABITS, ChatHabits, address=address, model=model)

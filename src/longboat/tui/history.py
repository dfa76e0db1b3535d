"""The prompts of a session and of this process, to be called up again with the arrow keys. Pure."""

from collections.abc import Iterable

KEPT = 500


class History:
    """`older` and `newer` walk; what was being typed waits at the newest end."""

    def __init__(self) -> None:
        self._prompts: list[str] = []
        self._place: int | None = None
        self._draft = ""

    def add(self, prompt: str) -> None:
        """The newest prompt; the walk begins anew."""
        self.rest()
        if prompt.strip():
            self._prompts = [known for known in self._prompts if known != prompt][-KEPT:]
            self._prompts.append(prompt)

    def take(self, older: Iterable[str]) -> None:
        """Prompts from before this process, oldest first."""
        known = set(self._prompts)
        before = [prompt for prompt in dict.fromkeys(older) if prompt.strip() and prompt not in known]
        self._prompts = [*before, *self._prompts][-KEPT:]
        self.rest()

    def older(self, typed: str) -> str | None:
        """The prompt before; None at the oldest."""
        if self._place is None:
            self._draft = typed
        place = len(self._prompts) if self._place is None else self._place
        if place == 0:
            return None
        self._place = place - 1
        return self._prompts[self._place]

    def newer(self) -> str | None:
        """The prompt after, at last what was being typed; None when nothing was called up."""
        if self._place is None:
            return None
        self._place += 1
        if self._place < len(self._prompts):
            return self._prompts[self._place]
        self._place = None
        return self._draft

    def rest(self) -> None:
        """What is typed now is a new prompt."""
        self._place, self._draft = None, ""

"""The prompts of a session and of this terminal, recalled with the arrow keys. Pure."""

from collections.abc import Iterable

KEPT = 500


class History:
    """`older` and `newer` step through the prompts; the unsent text is kept at the newest end."""

    def __init__(self) -> None:
        self._remembered: list[str] = []
        self._session: list[str] = []
        self._own: list[str] = []
        self._prompts: list[str] = []
        """All three in this order; of equal prompts only the newest."""
        self._place: int | None = None
        self._draft = ""

    def add(self, prompt: str) -> None:
        """Add the newest prompt and start again from the newest end."""
        self._own = [*self._own, prompt][-KEPT:]
        self.rest()
        self._join()

    def take(self, older: Iterable[str]) -> None:
        """Add prompts of the session, oldest first."""
        self._session = [*self._session, *older][-KEPT:]
        self._join()

    def remember(self, oldest: Iterable[str]) -> None:
        """Set the prompts of earlier processes, oldest first."""
        self._remembered = list(oldest)[-KEPT:]
        self._join()

    def _join(self) -> None:
        """A recalled prompt stays, even if the session is read just then."""
        recalled = None if self._place is None else self._prompts[self._place]
        newest_first = [*reversed(self._own), *reversed(self._session), *reversed(self._remembered)]
        known = [prompt for prompt in dict.fromkeys(newest_first) if prompt.strip()]
        self._prompts = known[:KEPT][::-1]
        if recalled is not None:
            self._place = self._prompts.index(recalled) if recalled in self._prompts else len(self._prompts)

    def older(self, typed: str) -> str | None:
        """The previous prompt; None at the oldest."""
        if self._place is None:
            self._draft = typed
        place = len(self._prompts) if self._place is None else self._place
        if place == 0:
            return None
        self._place = place - 1
        return self._prompts[self._place]

    def newer(self) -> str | None:
        """The next prompt, and finally the unsent text; None if no prompt was recalled."""
        if self._place is None:
            return None
        self._place += 1
        if self._place < len(self._prompts):
            return self._prompts[self._place]
        self._place = None
        return self._draft

    def rest(self) -> None:
        """Return to the newest end."""
        self._place, self._draft = None, ""

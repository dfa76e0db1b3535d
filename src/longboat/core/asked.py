"""The prompts of one turn, in order, and how many of them were already passed on to the prompt hooks."""

from collections.abc import Iterator


class Asked:
    def __init__(self, first: str) -> None:
        self._prompts = [first]
        self._told = 0

    def add(self, prompt: str) -> None:
        self._prompts.append(prompt)

    def take_back(self, prompt: str) -> None:
        """Remove the newest prompt with this text: the same text may have been sent before."""
        at = len(self._prompts) - 1 - self._prompts[::-1].index(prompt)
        del self._prompts[at]
        if at < self._told:
            self._told -= 1

    def begin_with(self, prompt: str) -> None:
        """Replace the text of the prompt that began the turn."""
        self._prompts[0] = prompt

    def forget(self) -> None:
        self._prompts.clear()

    def untold(self) -> Iterator[tuple[str, bool]]:
        """Each prompt once, with whether it began the turn; includes those added during the iteration."""
        while self._told < len(self._prompts):
            self._told += 1
            yield self._prompts[self._told - 1], self._told == 1

    def text(self) -> str:
        return "\n\n".join(self._prompts)

"""What people have asked for in one turn, in order, and how much of it was passed on to whoever is told of prompts."""

from collections.abc import Iterator


class Asked:
    def __init__(self, first: str) -> None:
        self._prompts = [first]
        self._told = 0

    def add(self, prompt: str) -> None:
        self._prompts.append(prompt)

    def take_back(self, prompt: str) -> None:
        """The newest that reads so: the same may have been asked before."""
        at = len(self._prompts) - 1 - self._prompts[::-1].index(prompt)
        del self._prompts[at]
        if at < self._told:
            self._told -= 1

    def begin_with(self, prompt: str) -> None:
        """What began the turn turned out to say this."""
        self._prompts[0] = prompt

    def forget(self) -> None:
        self._prompts.clear()

    def untold(self) -> Iterator[tuple[str, bool]]:
        """Each once, with whether it began the turn; also those that are added meanwhile."""
        while self._told < len(self._prompts):
            self._told += 1
            yield self._prompts[self._told - 1], self._told == 1

    def text(self) -> str:
        return "\n\n".join(self._prompts)

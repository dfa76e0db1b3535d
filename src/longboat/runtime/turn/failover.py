"""The model of a turn, and the ones that take over where it fails.

Owns which model the turn uses now. A turn that was taken over stays with the new model: going back in the middle would
lose the provider's cache and the model's own reasoning a second time.
"""

from collections.abc import Callable

import msgspec

from longboat.config.settings import RetrySection
from longboat.errors import ModelError
from longboat.models.failover import Lineup, is_made_good, name_of
from longboat.models.protocol import Model
from longboat.models.silence import SILENT


class TurnModels:
    def __init__(self, lineup: Lineup, retry: RetrySection, tell: Callable[[str], None]) -> None:
        """`tell` announces which model takes over from which."""
        self._lineup = lineup
        self._retry = retry
        self._tell = tell
        self._tried: list[Model] = []
        self.current = lineup.first()
        preferred = lineup.models[0]
        cooldown = lineup.cooldowns.of(name_of(preferred))
        if self.current is not preferred and cooldown is not None:
            tell(f"Using {name_of(self.current)}: {name_of(preferred)} is unavailable ({cooldown.why}).")

    @property
    def _others(self) -> list[Model]:
        return self._lineup.rest((*self._tried, self.current))

    @property
    def retry(self) -> RetrySection:
        """How often to try the current model: once if it has not answered since it failed and another model can."""
        on_trial = self._lineup.cooldowns.has_failed(self.current) and self._others
        return msgspec.structs.replace(self._retry, attempts=1) if on_trial else self._retry

    @property
    def has_others(self) -> bool:
        """Whether another model can answer."""
        return bool(self._others)

    def gives_way(self, error: ModelError) -> bool:
        """Whether another model should answer at once: the current one was silent for all the time it has, or its
        provider asks for a longer wait than is accepted."""
        too_long = (error.retry_after_s or 0) > self._retry.max_s
        return self.has_others and (error.code == SILENT or too_long)

    def answered(self) -> None:
        self._tried.clear()
        if self._lineup.cooldowns.end(self.current):
            self._tell(f"{name_of(self.current)} answers again.")

    def take_over(self, error: ModelError) -> Model:
        """Return the model that continues after this error. Raises the error if none can."""
        if not is_made_good(error):
            raise error
        failed, others = self.current, self._others
        if len(self._lineup.models) > 1:
            self._lineup.cooldowns.begin(failed, error)
        if not others:
            raise error
        self._tried.append(failed)
        self.current = others[0]
        minutes = max(1, round(self._lineup.cooldowns.left_s(name_of(failed)) / 60))
        self._tell(
            f"{name_of(failed)}: {error.title}. Continuing with {name_of(self.current)}. New prompts try the first one "
            f"again in {minutes} min."
        )
        return self.current

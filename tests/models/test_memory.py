"""What was learned of models: one file, many models, used at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from longboat.models.tool_modes.memory import ToolMemory
from longboat.models.tool_modes.model import STEPS


def test_what_is_learned_of_several_models_at_once_is_all_kept(tmp_path: Path) -> None:
    memories = [ToolMemory(tmp_path, address="http://here", model=str(number)) for number in range(8)]
    start = Barrier(len(memories))

    def learn(memory: ToolMemory) -> None:
        start.wait()
        memory.keep(STEPS)

    with ThreadPoolExecutor(len(memories)) as threads:
        list(threads.map(learn, memories))
    assert [memory.recall() for memory in memories] == [STEPS] * len(memories)

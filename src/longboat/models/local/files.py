"""Which models this machine has, and where their files are.

Owns what a name of the provider `local` stands for: an entry of the configuration with a `path`, a path itself, or
`<data_dir>/models/NAME.gguf`, where `longboat models pull` puts a model. Must not know how a model is run.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from longboat.config.settings import ModelEntry, ProviderSection
from longboat.errors import ModelError
from longboat.models.local.download import is_here
from longboat.models.local.fit import NO_OVERRIDES, Fit, Machine, Overrides, fit, this_machine
from longboat.models.local.gguf import ModelFile, read_model_file
from longboat.models.local.known import DEMO, KNOWN_MODELS, KnownModel
from longboat.models.providers import LOCAL_TYPE
from longboat.wire.listings import LocalModelInfo

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSpec:
    """A model on this machine, from the configuration or its name. Equal specs share a process."""

    provider: str
    name: str
    path: Path
    known: KnownModel | None = field(default=None, compare=False)
    overrides: Overrides = NO_OVERRIDES
    tools: Literal["native", "steps", "text", "none"] | None = None
    """How it uses tools; None means to detect it."""

    @property
    def file(self) -> ModelFile:
        """The file's metadata. Raises ModelError if the file is missing, except for a known model."""
        return self.known.file if self.known is not None else read_model_file(self.path)

    @property
    def is_here(self) -> bool:
        return is_here(self.known, self.path) if self.known is not None else self.path.is_file()

    def fit(self, machine: Machine) -> Fit:
        return fit(self.file, self.overrides, machine)


def describe_local(spec: LocalModelSpec) -> LocalModelInfo:
    """Describe a local model. Raises ModelError if its file cannot be used."""
    measured = spec.known.measured if spec.known is not None else None
    return LocalModelInfo(
        downloaded=spec.is_here,
        size=spec.file.size,
        memory=spec.fit(this_machine()).memory,
        solved=measured.solved if measured else None,
        tasks=measured.tasks if measured else None,
        tokens_per_s=measured.tokens_per_s if measured else None,
    )


def missing(spec: LocalModelSpec) -> str | None:
    """What to do before the model can be used. The demo downloads automatically."""
    if spec.known is None or spec.known is DEMO or spec.is_here:
        return None
    return f"Run `longboat models pull {spec.name}` ({spec.known.download_size / 1e9:.1f} GB)."


def is_path(provider: str, name: str) -> bool:
    """Whether a model is named by its file, as in `local//srv/models/qwen.gguf` or `local/~/qwen.gguf`."""
    return provider == LOCAL_TYPE and name.startswith(("/", "~/"))


def is_valid_name(name: str) -> bool:
    """Whether a model in the data directory can have this name: it becomes the name of a file."""
    return _NAME.fullmatch(name) is not None


def path_in(data_dir: Path, name: str) -> Path:
    """The path where `longboat models pull` puts the model of this name."""
    return data_dir / "models" / f"{name}.gguf"


def local_spec(provider: str, entry: ModelEntry, data_dir: Path) -> LocalModelSpec:
    """Find the model of this name. Raises ModelError if there is none."""
    given = entry.path if entry.path is not None else entry.id if is_path(provider, entry.id) else None
    if given is None and not is_valid_name(entry.id):
        raise _unknown(entry.id, data_dir)
    known = KNOWN_MODELS.get(entry.id) if given is None else None
    path = path_in(data_dir, entry.id) if given is None else _expanded(entry.id, given)
    if given is None and known is None and not path.is_file():
        raise _unknown(entry.id, data_dir)
    overrides = known.overrides if known is not None else NO_OVERRIDES
    return LocalModelSpec(
        provider=provider,
        name=entry.id,
        path=path,
        known=known,
        overrides=Overrides(
            context_window=entry.context_window or overrides.context_window,
            max_output_tokens=entry.max_output_tokens or overrides.max_output_tokens,
            threads=entry.threads or overrides.threads,
        ),
        tools=entry.tools or (known.tools if known is not None else None),
    )


def offered_entries(section: ProviderSection, data_dir: Path) -> tuple[ModelEntry, ...]:
    """The models that a prompt can name: from the configuration, the demo, and downloaded ones."""
    return _with(section.models, (DEMO.id, *downloaded_names(data_dir)))


def all_entries(section: ProviderSection, data_dir: Path) -> tuple[ModelEntry, ...]:
    """These, and the models that can be downloaded."""
    return _with(offered_entries(section, data_dir), KNOWN_MODELS)


def _with(entries: Iterable[ModelEntry], names: Iterable[str]) -> tuple[ModelEntry, ...]:
    listed = {entry.id: entry for entry in entries}
    return tuple((listed | {name: ModelEntry(id=name) for name in names if name not in listed}).values())


def downloaded_names(data_dir: Path) -> tuple[str, ...]:
    found = (data_dir / "models").glob("*.gguf")
    return tuple(sorted(path.stem for path in found if is_valid_name(path.stem)))


def _expanded(name: str, given: str) -> Path:
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # there is no home directory
        path = Path(given)
    if not path.is_absolute():
        raise _cannot_run(f"The path of the local model {name!r} must be absolute or begin with ~/ (got {given!r}).")
    return path


def _cannot_run(message: str) -> ModelError:
    return ModelError(message, title="Cannot run the prompt", code="model_not_configured")


def _unknown(name: str, data_dir: Path) -> ModelError:
    names = ", ".join(dict.fromkeys((*KNOWN_MODELS, *downloaded_names(data_dir))))
    return _cannot_run(
        f"There is no local model {name!r}. Use one of {names}, the path of a GGUF file (local//path/to/file.gguf), "
        "or download one: `longboat models pull URL --sha256 HASH`."
    )

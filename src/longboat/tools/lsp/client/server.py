"""One running language server: initialized, told of files, asked, and ended. Does not know other servers.

Its failures become a ToolError within a limited time; three unanswered requests in a row end it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from longboat.backoff import Backoff
from longboat.tools.context import ToolError
from longboat.tools.lsp.client.diagnostics_store import DiagnosticsStore, Source
from longboat.tools.lsp.client.documents import Document, Documents
from longboat.tools.lsp.client.file_text import read_text
from longboat.tools.lsp.client.framing import FramingError
from longboat.tools.lsp.client.initialize import answer, initialize_params
from longboat.tools.lsp.client.json_rpc import NOT_NOW, BadAnswer, JsonRpc, NoAnswer, Refused, ServerGone
from longboat.tools.lsp.client.positions import path_of
from longboat.tools.lsp.client.process import Process
from longboat.tools.lsp.client.server_specs import ServerSpec, merge_settings, python_settings
from longboat.tools.lsp.client.shapes import (
    ANYTHING,
    INITIALIZED,
    PULLED,
    Capabilities,
    Diagnostic,
    Progress,
    Published,
)
from longboat.tools.lsp.client.snapshot import Kind, Snapshot
from longboat.tools.process.programs import Programs

T = TypeVar("T")
Params = Mapping[str, Any]
_RESTART = Backoff(base_s=1.0, attempts=4)
_ASK_AGAIN = Backoff(base_s=0.1, factor=1.0, attempts=3)
_STRIKES = 3
"""Questions without an answer, in a row, that end a server."""
_MISSES = 2
"""Files in a row of which nothing was said in time; after them we wait less long."""
_TOLD_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits."""

    start_s: float = 30.0
    answer_s: float = 20.0
    diagnostics_s: float = 5.0
    """Until a server has looked at an edited file."""
    first_diagnostics_s: float = 15.0
    """The same, while the server is starting."""
    hurried_s: float = 1.0
    """The same, of a server that was late before."""
    settle_s: float = 0.1
    """A server that has sent nothing for this long has sent everything."""
    doubt_s: float = 1.0
    """A server that repeats itself after an edit may correct itself within this time."""
    idle_s: float = 15.0
    """How long a server may take for its own work, such as loading a project."""
    young_s: float = 30.0
    """A server that started so short a time ago may still be loading, and find nothing."""
    second_look_s: float = 1.0
    """After so much silence it is asked again."""
    shutdown_s: float = 1.0
    restart: Backoff = _RESTART
    """Restarts of a server that crashed."""
    ask_again: Backoff = _ASK_AGAIN
    """Repeats of a request that the server was not ready for."""
    stable_s: float = 60.0
    """A server that ran for this long did not crash at its start."""
    forgive_s: float = 300.0
    """How long until a server that was given up is tried again."""


class Refusal(ToolError):
    """The server says that it cannot do this."""


class Server:
    """`on_exit` is called once, with how it ended."""

    def __init__(
        self,
        spec: ServerSpec,
        root: Path,
        *,
        environ: Mapping[str, str],
        programs: Programs,
        timeouts: Timeouts,
        on_exit: Callable[[str], None],
    ) -> None:
        self.name = spec.name
        self.root = root
        self.capabilities = Capabilities()
        self.diagnostics = DiagnosticsStore()
        self.snapshot = Snapshot(root, spec.file_types, spec.root_markers)
        self._spec = spec
        self._timeouts = timeouts
        self._environ = {**environ, **spec.env}
        self._on_exit = on_exit
        self._process = Process(programs, on_data=self._receive, on_exit=self._ended)
        self._peer = JsonRpc(self._process.write, on_notification=self._hear, on_request=self._answer)
        self.documents = Documents(self._peer.notify, self.capabilities, self.diagnostics.clock)
        self._refreshing = asyncio.Lock()
        self._strikes = 0
        self._misses = 0
        self._said_before: dict[Path, tuple[Diagnostic, ...]] = {}
        self._started_at = 0.0
        """When it answered `initialize`; zero before."""
        self._settings: Mapping[str, Any] = spec.settings

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    async def start(self) -> None:
        """Raises OSError, ValueError, or an error of the peer."""
        self._settings = await asyncio.to_thread(self._find_settings)
        await self._process.start(self._spec.argv, self.root, self._environ)
        params = initialize_params(self.root, self._spec.initialization_options)
        said, _ = await asyncio.gather(
            self._peer.request("initialize", params, INITIALIZED, timeout_s=self._timeouts.start_s),
            asyncio.to_thread(self.snapshot.refresh),
        )
        self.capabilities = said.capabilities
        self.documents = Documents(self._peer.notify, self.capabilities, self.diagnostics.clock)
        self._started_at = _now()
        self._peer.notify("initialized", {})
        if self._settings:
            self._peer.notify("workspace/didChangeConfiguration", {"settings": self._settings})

    def _find_settings(self) -> Mapping[str, Any]:
        if ".py" not in self._spec.file_types:
            return self._spec.settings
        return merge_settings(python_settings(self.root, self._environ), self._spec.settings)

    async def aclose(self) -> None:
        """Ask it to leave, then end it with everything that it started."""
        if self.is_alive and self._started_at:
            with suppress(Refused, NoAnswer, BadAnswer, ServerGone):
                await self._peer.request("shutdown", None, ANYTHING, timeout_s=self._timeouts.shutdown_s)
                self._peer.notify("exit", None)
                await self._process.wait_gone(self._timeouts.shutdown_s)
        await self._process.end()

    async def ask(self, method: str, params: Params, decoder: msgspec.json.Decoder[T]) -> T:
        """The server's answer; a ToolError if it gives none. A cancel goes through to the server."""
        failures, backoff = 0, self._timeouts.ask_again
        while True:
            try:
                said = await self._peer.request(method, params, decoder, timeout_s=self._timeouts.answer_s)
            except Refused as refused:
                failures += 1
                if refused.code in NOT_NOW and not backoff.gives_up(failures):
                    await asyncio.sleep(backoff.delay(failures))
                    continue
                raise Refusal(f"{self.name} refused: {str(refused).strip()[:500] or refused.code}.") from None
            except NoAnswer as error:
                self._strike()
                raise ToolError(f"{self.name} gave {error}. Try again later, or use grep and view instead.") from None
            except BadAnswer as error:
                raise ToolError(f"{self.name} cannot be used here: {error}. Use grep and view instead.") from None
            except ServerGone as error:
                raise ToolError(f"{self.name} exited before it answered ({error}). Try again.") from None
            self._strikes = 0
            return said

    async def ask_any(
        self, method: str, questions: Sequence[Params], decoder: msgspec.json.Decoder[T], *, thorough: bool = False
    ) -> T:
        """The first answer that says something; if none does, the last.

        A server that has just started may still be loading: if it finds nothing it is asked again, and a `thorough`
        question, whose answer must not be half of the truth, waits until it has nothing more to do.
        """
        is_young = _now() < self._started_at + self._timeouts.young_s
        await self.wait_idle(self._timeouts.second_look_s if thorough and is_young else 0.0)
        said = await self._ask_each(method, questions, decoder)
        if said or not is_young:
            return said
        await self.wait_idle(self._timeouts.second_look_s)
        return await self._ask_each(method, questions, decoder)

    async def _ask_each(self, method: str, questions: Sequence[Params], decoder: msgspec.json.Decoder[T]) -> T:
        first_refusal: Refusal | None = None
        for question in questions:
            try:
                said = await self.ask(method, question, decoder)
            except Refusal as refusal:
                first_refusal = first_refusal or refusal
                continue
            if said:
                return said
        if first_refusal is not None:
            raise first_refusal
        return said

    async def wait_idle(self, quiet_s: float = 0.0) -> None:
        """Wait until the server has finished its own work, such as loading the project, and has sent nothing for
        `quiet_s`. Bounded."""
        try:
            async with asyncio.timeout(self._timeouts.idle_s):
                await self.diagnostics.wait_quiet(quiet_s)
        except TimeoutError:
            self.diagnostics.give_up_on_progress()
        except ServerGone as error:
            raise ToolError(f"{self.name} exited ({error}). Try again.") from None

    async def refresh(self) -> None:
        """Tell it of every file that changed on disk since it was last told."""
        async with self._refreshing:
            changes = await asyncio.to_thread(self.snapshot.refresh, self.documents.paths)
            watched = [{"uri": path.as_uri(), "type": int(kind)} for path, kind in changes.items()]
            for start in range(0, len(watched), _TOLD_AT_ONCE):
                some = {"changes": watched[start : start + _TOLD_AT_ONCE]}
                self._peer.notify("workspace/didChangeWatchedFiles", some)
            for path in set(changes) & set(self.documents.paths):
                await self._reread(path)
            for path, kind in changes.items():
                if kind is Kind.DELETED:
                    self.diagnostics.forget(path)

    async def check(self, path: Path, text: str, *, edited: bool = False) -> bool:
        """Have it look at a file as it is now; whether it did so in time. What it says is in the diagnostics then.

        After an edit we do not wait as long as for someone who asks, but want to know of the other open files too.
        """
        timeout_s = self._timeouts.answer_s
        if edited:
            timeout_s = self._timeouts.hurried_s if self._misses >= _MISSES else self._timeouts.diagnostics_s
        document = self.documents.put(path, text)
        if edited:
            self.documents.saved(path)
        try:
            async with asyncio.timeout(timeout_s):
                await self._look(path, document, with_others=edited)
                await self.diagnostics.wait_quiet(self._timeouts.settle_s)
                if edited:
                    await self._reconsider(path)
        except TimeoutError:
            self._misses += 1
            return False
        except ServerGone as error:
            raise ToolError(f"{self.name} exited ({error}). Try again.") from None
        self._misses = 0
        return True

    async def _look(self, path: Path, document: Document, *, with_others: bool) -> None:
        if not self.capabilities.diagnostic_provider:
            await self.diagnostics.wait_fresh(path, document)
            return
        await self._pull(path, document)
        others = [each for each in self.documents.paths if each != path] if with_others else []
        opened = [(each, found) for each in others if (found := self.documents.get(each)) is not None]
        await asyncio.gather(*(self._pull(each, found) for each, found in opened))

    async def _reconsider(self, path: Path) -> None:
        """A busy pyright publishes the old problems under the new version first: what is said again to the letter after
        an edit is given a little time to be taken back."""
        said = self.diagnostics.of(path)
        if said and said == self._said_before.get(path):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeouts.doubt_s):
                    await self.diagnostics.wait_other(path, said)
                    await self.diagnostics.wait_quiet(self._timeouts.settle_s)
        self._said_before[path] = self.diagnostics.of(path)

    async def _pull(self, path: Path, document: Document) -> None:
        params = {"textDocument": {"uri": path.as_uri()}}
        said = await self.ask("textDocument/diagnostic", params, PULLED)
        if said.kind == "full":
            self.diagnostics.publish(path, said.items, source=Source.PULLED, version=document.version)

    async def _reread(self, path: Path) -> None:
        try:
            text = await asyncio.to_thread(read_text, path)
        except ToolError:
            self.documents.close(path)
        else:
            self.documents.put(path, text)
            self.documents.saved(path)

    def _strike(self) -> None:
        self._strikes += 1
        if self._strikes >= _STRIKES:
            self._process.kill(f"it left {_STRIKES} requests unanswered")

    def _receive(self, data: bytes) -> None:
        try:
            self._peer.receive(data)
        except FramingError as error:
            self._process.kill(str(error))

    def _ended(self, reason: str) -> None:
        self._peer.close(reason)
        self.diagnostics.close(reason)
        self._on_exit(reason)

    def _answer(self, method: str, params: msgspec.Raw) -> Any:
        return answer(method, params, settings=self._settings, root=self.root)

    def _hear(self, method: str, params: msgspec.Raw) -> None:
        if method == "textDocument/publishDiagnostics":
            published = msgspec.json.decode(params, type=Published)
            if (path := path_of(published.uri)) is not None:
                self.diagnostics.publish(
                    Path(path), published.diagnostics, source=Source.PUSHED, version=published.version
                )
        elif method == "$/progress":
            progress = msgspec.json.decode(params, type=Progress)
            kind = progress.value.get("kind") if isinstance(progress.value, dict) else None
            if kind in ("begin", "end"):
                self.diagnostics.progress(progress.token, ended=kind == "end")


def _now() -> float:
    return asyncio.get_running_loop().time()

"""The setup of a model: providers, key, test and default model, one dialog after the other. Opens automatically if no
model can answer a prompt. Makes the requests; the dialogs only ask."""

from typing import TYPE_CHECKING, TypeVar

from longboat.errors import LongboatError
from longboat.tui.dialogs.confirm import TextDialog
from longboat.tui.dialogs.frame import GRACE_S, Dialog
from longboat.tui.dialogs.setup import KeyDialog, ProviderPicker, SetupModelPicker, WorkingKey
from longboat.wire.listings import ModelInfo
from longboat.wire.providers import Provider, ProviderCheck

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp


Result = TypeVar("Result")


class Setup:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self._offered = False

    def offer(self) -> bool:
        """Open automatically, once; after that, /connect opens it. False if it was open before."""
        if self._offered:
            return False
        self._offered = True
        self.open(grace_s=GRACE_S)
        return True

    def open(self, *, grace_s: float = 0.0) -> None:
        self._app.run_worker(self._run(grace_s), name="setup", group="setup", exclusive=True)

    async def _run(self, grace_s: float) -> None:
        try:
            await self._connect(grace_s)
        except LongboatError as error:
            self._app.notify(error.message, severity="error", markup=False)
        self._app.asking.refresh()

    async def _connect(self, grace_s: float) -> None:
        client = self._app.connection.client
        while True:
            page = await client.providers()
            provider = await self._ask(ProviderPicker(page.items, grace_s=grace_s))
            if provider is None:
                return
            if (tested := await self._tested(provider)) is not None:
                break
            grace_s = 0.0
        model = await self._model(provider, tested)
        if model is None:
            return
        await client.connect_provider(
            provider.id,
            api_key=tested.api_key,
            base_url=tested.base_url,
            model=model.name.partition("/")[2],
            context_window=model.context_window,
        )
        self._app.model = None  # the new default, not one that was chosen before
        self._app.notify(f"Connected. Default model: {model.name}.", markup=False)

    async def _ask(self, dialog: Dialog[Result]) -> Result | None:
        """What the dialog ended with; None if the person closed it."""
        return await self._app.push_screen_wait(dialog)

    async def _tested(self, provider: Provider) -> WorkingKey | None:
        async def check(api_key: str | None, base_url: str | None) -> ProviderCheck:
            return await self._app.connection.client.check_provider(provider.id, api_key=api_key, base_url=base_url)

        return await self._ask(KeyDialog(provider, check))

    async def _model(self, provider: Provider, tested: WorkingKey) -> ModelInfo | None:
        """If the server has no list, the person enters a name."""
        if tested.found.models:
            return await self._ask(SetupModelPicker(tested.found.models))
        written = await self._ask(TextDialog("The test passed, but the server has no list of models. Model name:"))
        return None if written is None else ModelInfo(name=f"{provider.id}/{written.text}", ready=True)

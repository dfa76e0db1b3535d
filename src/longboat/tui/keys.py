"""Keys in the order in which they were typed.

Textual does what a key is bound to after letters that were typed later, when they all arrive together: from a slow
line, or on a busy machine. Must not know what keys are bound to.
"""

from textual.events import Key
from textual.widget import Widget


async def run_key_binding(widget: Widget, event: Key) -> None:
    """Do what this key is bound to in the widget, if it can be done there now."""
    bound = widget._bindings.key_to_bindings.get(event.key)
    if bound and await widget.app.run_action(bound[0].action, widget):
        event.stop()
        event.prevent_default()

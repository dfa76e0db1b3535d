"""Handles keys in the order in which they were typed.

If several keys arrive together, over a slow line or on a busy machine, Textual runs the action of a key only after
inserting letters that were typed later. Must not know what keys are bound to.
"""

from textual.events import Key
from textual.widget import Widget


async def run_key_binding(widget: Widget, event: Key) -> None:
    """Run the widget's action for this key now, if it is available."""
    bound = widget._bindings.key_to_bindings.get(event.key)
    if bound and await widget.app.run_action(bound[0].action, widget):
        event.stop()
        event.prevent_default()

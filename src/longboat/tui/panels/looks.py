"""Styles that dialogs and panels share. Colours come from the theme."""

FAINT = "$foreground 60%"
"""For parts of a text, where `$text-muted` does not work: it depends on the background, which a part does not know."""

"""Looks that dialogs and panels share. Colours are those of the theme."""

FAINT = "$foreground 60%"
"""For pieces of a text: `$text-muted` stands for a contrast to the background, which a piece does not know."""

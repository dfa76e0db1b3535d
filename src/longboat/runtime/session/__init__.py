"""One session: its commands, decided one at a time and recorded."""

"""Decisions without I/O: the lifecycle of runs, streaming messages, transcripts. Readable in an hour."""

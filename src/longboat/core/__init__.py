"""Decisions without I/O: no await, clock, log, store or randomness. `runtime/` carries them out."""

"""Decisions without I/O: no await, clock, log, store or randomness. The shell in `runtime/` obeys them."""

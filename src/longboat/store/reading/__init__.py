"""What the runtime reads, composed of named queries: the same for every dialect."""

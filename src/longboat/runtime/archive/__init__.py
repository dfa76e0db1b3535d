"""Sessions forked, exported and imported."""

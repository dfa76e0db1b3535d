"""The client of language servers."""

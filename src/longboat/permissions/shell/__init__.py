"""Reads bash commands and says what they would do."""

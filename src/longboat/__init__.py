"""Longboat: a coding-agent server that several people and programs can share."""

__version__ = "0.1.0"

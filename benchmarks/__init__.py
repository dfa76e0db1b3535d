"""Benchmarks: each row of the table in README.md measures a floor and Longboat in the same run."""

"""Configuration: loaded and checked once. An error names the file, the line and the expected value."""

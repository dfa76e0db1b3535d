"""Configuration: loaded and checked once; a mistake names its file, its line and what was expected."""

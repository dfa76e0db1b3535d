"""Configuration: settings of the process and `longboat.json`, loaded and checked; a mistake names its file and line."""

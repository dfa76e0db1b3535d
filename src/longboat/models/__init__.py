"""The protocol for language models and its adapters. Adapters are imported on first use, because they are heavy."""

"""How well a model works with Longboat: small tasks in small repositories, judged by running things (docs/evals.md)."""

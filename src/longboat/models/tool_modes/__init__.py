"""How models use tools: natively, in steps held to a JSON schema, as text, or not at all."""

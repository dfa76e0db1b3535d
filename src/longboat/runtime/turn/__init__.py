"""One turn: model steps, tool calls and questions."""

"""The HTTP face: routes that parse, call and reply; who may call; where it listens. Decides nothing about runs."""

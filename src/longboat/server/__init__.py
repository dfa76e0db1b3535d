"""HTTP: routes that parse, call and reply; who may call; where to listen. Decides nothing about runs."""

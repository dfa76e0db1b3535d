"""The HTTP server: routes that parse, call and reply; authentication; listening. Decides nothing about runs."""

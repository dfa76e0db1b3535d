"""The contract between server and clients: ids, shapes, requests, events, the SSE decoder. Pure."""

"""The contract between server and clients: ids, shapes, requests, events and the SSE codec. Pure; no I/O."""

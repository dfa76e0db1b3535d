"""The panels around the transcript: the queue, the plan, the connected clients, jobs, and diffs. `show(…)` updates a
panel; it reports what the person wants with a message or a callable.
"""

"""What stands beside the transcript: the queue, the plan, who is here, jobs, and differences of files. Each is shown
anew with `show(…)`, and says what somebody wants by a message or a callable.
"""

"""What the terminal app asks in front of everything else. Each dialog takes what it shows and ends with a frozen
result; None is: nothing was decided. Must not know the server: what has to be looked up comes as a callable.
"""

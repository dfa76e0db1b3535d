"""The dialogs of the terminal app. Each takes what it shows and ends with a frozen result, or with None if nothing was
decided. Must not know the server: what has to be looked up comes through a callable.
"""

"""Tools that search file names and contents."""

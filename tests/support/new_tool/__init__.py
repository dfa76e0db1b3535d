"""A folder with one more tool, as somebody would add it: stamp.py and stamp.md."""

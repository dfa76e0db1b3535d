"""How the pictures of the docs are taken. `docs/pictures.py` is the one who calls."""

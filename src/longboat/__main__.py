"""`python -m longboat`."""

from longboat.cli.main import main

main()

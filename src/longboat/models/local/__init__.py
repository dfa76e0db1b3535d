"""Models that run on this machine: their files, the process that runs one, and how it is used."""

"""One module per kind of work; each has `measure()`, which gives the rows of the table that it measured."""

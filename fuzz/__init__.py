"""`make fuzz`: the reader of shell commands, compared with the real bash and the real programs."""

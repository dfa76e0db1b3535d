"""Which calls may run: rules, verdicts, and the reader of shell commands. Pure, without I/O."""

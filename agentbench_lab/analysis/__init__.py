"""Numbers: rows in, tidy frames out. Nothing here runs, draws or writes."""

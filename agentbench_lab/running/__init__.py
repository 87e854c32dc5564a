"""Runs: what is to be run, running it, and the journal that loses nothing."""

"""Runs as rows: the schemas, the product row, the card, and how a run is saved and read back."""

"""What tools act on: declared tools, worlds that run them, and the ledger of what really happened."""

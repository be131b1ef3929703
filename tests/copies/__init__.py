"""The ledger held against a witness that knows nothing of it."""

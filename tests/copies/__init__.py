"""The ledger compared with an independent counter of copies."""

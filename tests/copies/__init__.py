"""Tests that compare the ledger with an independent counter of copies."""

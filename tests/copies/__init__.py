"""Tests that compare `onecopy.ledger` (counts of bytes converted and copied) with an independent
counter of copies, a library that is preloaded."""

"""The number of examples in property tests, and of repetitions in other tests."""

from __future__ import annotations

import os
from fractions import Fraction

from hypothesis import settings

#: A factor for the number of examples: `ONECOPY_EXAMPLES=1/5` on the additional interpreters, `=20`
#: for a long run.
_PART = Fraction(os.environ.get("ONECOPY_EXAMPLES", "1"))


def scaled(n: int) -> int:
    """``n`` multiplied by the environment variable `ONECOPY_EXAMPLES`; at least 1."""
    return max(1, round(n * _PART))


def tried(examples: int) -> settings:
    """Hypothesis settings for a property with that number of examples, multiplied as by `scaled`.

    There is no deadline, since the machines are shared.
    """
    return settings(max_examples=scaled(examples), deadline=None)

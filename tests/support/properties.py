"""The number of examples of property tests, and of repetitions."""

from __future__ import annotations

import os
from fractions import Fraction

from hypothesis import settings

#: A factor for the number of examples: `ONECOPY_EXAMPLES=1/5` on the additional interpreters, `=20`
#: for a long run.
_PART = Fraction(os.environ.get("ONECOPY_EXAMPLES", "1"))


def scaled(n: int) -> int:
    """A number of repetitions, multiplied by `ONECOPY_EXAMPLES`; at least one."""
    return max(1, round(n * _PART))


def tried(examples: int) -> settings:
    """The settings of a property with so many examples; no deadline, since the machines are
    shared."""
    return settings(max_examples=scaled(examples), deadline=None)

"""How thoroughly a property is looked at."""

from __future__ import annotations

import os
from fractions import Fraction

from hypothesis import settings

#: The part of the examples that is tried: `ONECOPY_EXAMPLES=1/5` on interpreters beside the one where all of them are, `=20` for a long night.
_PART = Fraction(os.environ.get("ONECOPY_EXAMPLES", "1"))


def tried(examples: int) -> settings:
    """The settings of a property with so many examples; none is timed, since the machines are shared."""
    return settings(max_examples=max(1, round(examples * _PART)), deadline=None)

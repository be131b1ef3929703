"""NumPy arrays and scalars for codecs, all with fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Items of a large array.
N_ITEMS = 200_000
#: The number of small arrays, and scalars, in a list.
N_LISTED = 1000


def _draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _in_rows(array: Array) -> Array:
    """The same items in rows of ten."""
    return array.reshape(-1, 10)


def float64() -> Array:
    """Measurements around zero, with all digits."""
    return _draw(1).standard_normal(N_ITEMS) * 1000


def float64_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(float64())


def float32() -> Array:
    """The same in 32 bits."""
    return float64().astype("f4")


def float32_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(float32())


def int64() -> Array:
    """Integers of up to twelve digits, of both signs."""
    return _draw(2).integers(-(10**12), 10**12, N_ITEMS)


def int64_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(int64())


def int64_large() -> Array:
    """Integers that need more than 32 bits."""
    return _draw(7).integers(2**40, 2**50, N_ITEMS)


def int64_small() -> Array:
    """Counts below 1,000."""
    return _draw(3).integers(0, 1000, N_ITEMS)


def int32() -> Array:
    """All integers of 32 bits."""
    return _draw(4).integers(-(2**31), 2**31, N_ITEMS, dtype="i4")


def int32_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(int32())


def booleans() -> Array:
    """As many positive as negative ones."""
    return _draw(5).random(N_ITEMS) < 0.5


def booleans_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(booleans())


def moments() -> Array:
    """Microseconds of some years."""
    return _draw(6).integers(15 * 10**14, 17 * 10**14, N_ITEMS).view("M8[us]")


def moments_rows() -> Array:
    """The same, of two dimensions."""
    return _in_rows(moments())


def seconds() -> Array:
    """Whole seconds of some years."""
    return moments().astype("M8[s]")


def milliseconds() -> Array:
    """Milliseconds of some years."""
    return moments().astype("M8[ms]")


def small_int64() -> list[Array]:
    """1,000 arrays of three counts."""
    return list(int64_small()[: 3 * N_LISTED].reshape(-1, 3))


def small_float64() -> list[Array]:
    """1,000 points."""
    return list(float64()[: 3 * N_LISTED].reshape(-1, 3))


def small_in_rows() -> list[dict[str, Any]]:
    """1,000 objects with a point in each."""
    return [{"id": k, "at": point} for k, point in enumerate(small_float64())]


def scalars_float64() -> list[Any]:
    """1,000 scalars, each a separate object."""
    return list(float64()[:N_LISTED])


def scalars_float32() -> list[Any]:
    """The same of 32 bits."""
    return list(float32()[:N_LISTED])


def scalars_int64() -> list[Any]:
    """1,000 counts."""
    return list(int64_small()[:N_LISTED])


def scalars_bool() -> list[Any]:
    """1,000 booleans."""
    return list(booleans()[:N_LISTED])


def scalars_datetime64() -> list[Any]:
    """1,000 datetimes."""
    return list(moments()[:N_LISTED])

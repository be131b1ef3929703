"""NumPy arrays and scalars as inputs of the codec benchmarks, generated with fixed seeds."""

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
    """The items of a one-dimensional array as a two-dimensional one with rows of ten."""
    return array.reshape(-1, 10)


def float64() -> Array:
    """Doubles around zero, with all significant digits."""
    return _draw(1).standard_normal(N_ITEMS) * 1000


def float64_rows() -> Array:
    """The items of `float64` in two dimensions."""
    return _in_rows(float64())


def float32() -> Array:
    """The items of `float64` as 32-bit floats."""
    return float64().astype("f4")


def float32_rows() -> Array:
    """The items of `float32` in two dimensions."""
    return _in_rows(float32())


def int64() -> Array:
    """Positive and negative integers of up to twelve digits."""
    return _draw(2).integers(-(10**12), 10**12, N_ITEMS)


def int64_rows() -> Array:
    """The items of `int64` in two dimensions."""
    return _in_rows(int64())


def int64_large() -> Array:
    """Integers that need more than 32 bits."""
    return _draw(7).integers(2**40, 2**50, N_ITEMS)


def int64_small() -> Array:
    """Integers from 0 to 999."""
    return _draw(3).integers(0, 1000, N_ITEMS)


def int32() -> Array:
    """Random integers from the whole range of 32 bits."""
    return _draw(4).integers(-(2**31), 2**31, N_ITEMS, dtype="i4")


def int32_rows() -> Array:
    """The items of `int32` in two dimensions."""
    return _in_rows(int32())


def booleans() -> Array:
    """Random booleans."""
    return _draw(5).random(N_ITEMS) < 0.5


def booleans_rows() -> Array:
    """The items of `booleans` in two dimensions."""
    return _in_rows(booleans())


def moments() -> Array:
    """Random times of several years, in microseconds."""
    return _draw(6).integers(15 * 10**14, 17 * 10**14, N_ITEMS).view("M8[us]")


def moments_rows() -> Array:
    """The items of `moments` in two dimensions."""
    return _in_rows(moments())


def seconds() -> Array:
    """The items of `moments` in whole seconds."""
    return moments().astype("M8[s]")


def milliseconds() -> Array:
    """The items of `moments` in milliseconds."""
    return moments().astype("M8[ms]")


def small_int64() -> list[Array]:
    """1,000 arrays of three small integers each."""
    return list(int64_small()[: 3 * N_LISTED].reshape(-1, 3))


def small_float64() -> list[Array]:
    """1,000 arrays of three doubles each."""
    return list(float64()[: 3 * N_LISTED].reshape(-1, 3))


def small_in_rows() -> list[dict[str, Any]]:
    """1,000 dicts, each with an array of three doubles."""
    return [{"id": k, "at": point} for k, point in enumerate(small_float64())]


def scalars_float64() -> list[Any]:
    """1,000 NumPy doubles, each a separate object."""
    return list(float64()[:N_LISTED])


def scalars_float32() -> list[Any]:
    """1,000 NumPy floats of 32 bits, each a separate object."""
    return list(float32()[:N_LISTED])


def scalars_int64() -> list[Any]:
    """1,000 NumPy integers from 0 to 999."""
    return list(int64_small()[:N_LISTED])


def scalars_bool() -> list[Any]:
    """1,000 NumPy booleans."""
    return list(booleans()[:N_LISTED])


def scalars_datetime64() -> list[Any]:
    """1,000 NumPy datetimes."""
    return list(moments()[:N_LISTED])

"""The BSON test vectors in `tests/vectors/bson`, which all implementations share: the file is up to
date, and pymongo confirms its documents."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import bson as theirs
import pytest

from onecopy import bson
from tests.vectors.bson.make import FILE, Case, cases, made

ALL = list(cases())
VALID = [case for case in ALL if not case.error]
WRONG = [case for case in ALL if case.error]


def test_the_file_is_up_to_date_and_its_names_are_distinct() -> None:
    assert FILE.read_text(encoding="utf-8") == made()
    assert len({case.name for case in ALL}) == len(ALL)


_FORMS: dict[str, Any] = {
    "$numberDouble": float,
    "$numberInt": int,
    "$numberLong": lambda v: bson.Int64(int(v)),
    "$numberDecimal": lambda v: bson.Decimal128(Decimal(v)),
    "$oid": bson.ObjectId,
    "$binary": lambda v: bson.Binary(base64.b64decode(v["base64"]), int(v["subType"], 16)),
    "$undefined": lambda _: bson.Undefined(),
    "$date": lambda v: bson.DatetimeMS(int(v["$numberLong"])),
    "$regularExpression": lambda v: bson.Regex(v["pattern"], v["options"]),
    "$dbPointer": lambda v: bson.DBPointer(v["$ref"], bson.ObjectId(v["$id"]["$oid"])),
    "$symbol": bson.Symbol,
    "$timestamp": lambda v: bson.Timestamp(v["t"], v["i"]),
    "$minKey": lambda _: bson.MinKey(),
    "$maxKey": lambda _: bson.MaxKey(),
}


def _meant(value: Any) -> Any:
    """The Python object that a value of canonical Extended JSON represents."""
    if isinstance(value, list):
        return [_meant(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$code" in value:
        return bson.Code(value["$code"], _meant(value["$scope"]) if "$scope" in value else None)
    name, inner = next(iter(value.items()), ("", None))
    if len(value) == 1 and name in _FORMS:
        return _FORMS[name](inner)
    return {key: _meant(item) for key, item in value.items()}


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_each_value_is_written_as_in_its_vector(case: Case) -> None:
    assert bson.encode(_meant(case.json)) == case.data


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_pymongo_reads_each_valid_vector(case: Case) -> None:
    options: Any = theirs.CodecOptions(datetime_conversion=theirs.DatetimeConversion.DATETIME_MS)
    assert list(theirs.decode(case.data, options)) == list(case.json)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_pymongo_refuses_each_invalid_vector(case: Case) -> None:
    with pytest.raises(theirs.InvalidBSON):
        theirs.decode(case.data)

"""All cases of MongoDB's BSON corpus, which tests libraries that convert between BSON and Extended
JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onecopy import bson
from onecopy.json import JSONDecodeError
from tests.support import bson_corpus
from tests.support.bson_corpus import Case
from tests.support.drivers import Unavailable
from tests.support.skips import cannot

# pip builds the metadata of the source package that it downloads.
pytestmark = pytest.mark.timeout(900)

#: The number of cases of each kind, and of byte strings and texts of the valid ones.
N_CASES = {"valid": 731, "decodeErrors": 75, "parseErrors": 180}


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[Case]]:
    """The cases of the corpus by kind: ``valid``, ``decodeErrors`` or ``parseErrors``."""
    try:
        return {kind: bson_corpus.cases(kind) for kind in N_CASES}
    except Unavailable as reason:
        cannot(str(reason))


def plain(text: str | bytes) -> Any:
    """Parses a JSON text for a comparison: keys in order, duplicates included, and numbers as
    digits."""

    def digits(number: str) -> tuple[str, str]:
        return "number", number

    return json.loads(text, object_pairs_hook=tuple, parse_float=digits, parse_int=digits)


def test_all_cases_exist(corpus: dict[str, list[Case]]) -> None:
    assert {kind: len(cases) for kind, cases in corpus.items()} == N_CASES


def test_documents_become_the_canonical_and_the_relaxed_text(corpus: dict[str, list[Case]]) -> None:
    n = 0
    for case in corpus["valid"]:
        for form in ("canonical_bson", "degenerate_bson"):
            if form not in case.case:
                continue
            data = case.bytes(form)
            bson.validate(data)
            assert plain(bson.to_json(data, canonical=True)) == plain(case.case["canonical_extjson"]), case
            if "relaxed_extjson" in case.case:
                assert plain(bson.to_json(data)) == plain(case.case["relaxed_extjson"]), case
            n += 1
    assert n == 735


def test_text_becomes_the_canonical_document(corpus: dict[str, list[Case]]) -> None:
    n = 0
    for case in corpus["valid"]:
        expected = case.bytes("canonical_bson")
        for form in ("canonical_extjson", "degenerate_extjson"):
            text = case.case.get(form)
            if text is None:
                continue
            if case.case.get("lossy"):
                # The payload of a NaN has no text form.
                assert plain(bson.to_json(bson.from_json(text), canonical=True)) == plain(
                    case.case["canonical_extjson"]
                )
            else:
                assert bson.from_json(text) == expected, case
            assert bson.from_json(text.encode()) == bson.from_json(text)
            n += 1
    assert n > 900


def test_relaxed_text_round_trips(corpus: dict[str, list[Case]]) -> None:
    texts = [case.case["relaxed_extjson"] for case in corpus["valid"] if "relaxed_extjson" in case.case]
    assert len(texts) > 25
    for text in texts:
        assert plain(bson.to_json(bson.from_json(text))) == plain(text)


def test_invalid_documents_are_refused_with_their_offset(corpus: dict[str, list[Case]]) -> None:
    for case in corpus["decodeErrors"]:
        data = case.bytes("bson")
        reads: list[Any] = [bson.validate, bson.to_json, bson.to_json_lines]
        for read in reads:
            with pytest.raises(bson.BSONDecodeError) as caught:
                read(data)
            assert 0 <= caught.value.offset_bytes <= len(data), case


def test_invalid_text_of_a_document_is_refused_with_its_position(corpus: dict[str, list[Case]]) -> None:
    for case in corpus["parseErrors"]:
        text = case.case["string"]
        if case.bson_type == "0x13":
            # A bare decimal.
            text = json.dumps({"d": {"$numberDecimal": text}})
        json.loads(text)
        with pytest.raises(JSONDecodeError) as caught:
            bson.from_json(text)
        assert 0 <= caught.value.pos <= len(text), case

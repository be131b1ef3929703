"""Row streams as responses of each framework, through its own test client."""

from __future__ import annotations

import warnings

import pytest

import onecopy
from tests.web import apps
from tests.web.clients import CLIENTS

every_framework = pytest.mark.parametrize("framework", CLIENTS)


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    apps.pool.cache_clear()
    apps.aio_pool.cache_clear()


@pytest.fixture
def expected(database: str) -> dict[str, bytes]:
    """The bytes of each named query's stream, without a framework."""
    con = onecopy.connect(database)
    return {name: con.execute(apps.QUERIES[name]).json().read() for name in ("short", "long", "empty")}


@every_framework
def test_a_long_response_has_the_bytes_of_the_stream(framework: str, expected: dict[str, bytes]) -> None:
    answer = CLIENTS[framework]("/long")
    assert answer.status == 200
    assert answer.body == expected["long"]
    assert "content-length" not in answer.fields


@every_framework
@pytest.mark.parametrize("name", ["short", "empty"])
def test_a_short_response_has_its_length(framework: str, name: str, expected: dict[str, bytes]) -> None:
    answer = CLIENTS[framework](f"/{name}")
    assert answer.body == expected[name]
    assert answer.fields["content-length"] == str(len(expected[name]))


@every_framework
def test_the_head_has_content_type_and_disposition(framework: str) -> None:
    fields = CLIENTS[framework]("/short").fields
    assert fields["content-type"] == "application/json"
    assert fields["x-content-type-options"] == "nosniff"
    assert fields["content-disposition"] == "attachment; filename=\"St_dte.json\"; filename*=UTF-8''St%C3%A4dte.json"


@every_framework
def test_an_error_before_the_first_chunk_is_raised_to_the_framework(framework: str) -> None:
    # The test clients pass on the exception of which their framework makes a 500; Falcon sends one.
    if framework.startswith("falcon"):
        with warnings.catch_warnings():
            assert CLIENTS[framework]("/atonce").status == 500
    else:
        with pytest.raises(onecopy.DataError, match="malformed"):
            CLIENTS[framework]("/atonce")
    assert CLIENTS[framework]("/short").status == 200


@every_framework
def test_an_error_after_the_first_chunk_is_raised_to_the_server(framework: str) -> None:
    with pytest.raises(onecopy.DataError, match="malformed"):
        CLIENTS[framework]("/late")
    # Its connection was returned.
    assert CLIENTS[framework]("/short").status == 200

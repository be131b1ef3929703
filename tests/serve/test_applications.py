"""Misbehaving applications: the server sends a correct response, logs the error, and handles the
next request."""

from __future__ import annotations

import pytest

from tests.serve.app import INJECTIONS
from tests.support.raw_http import Closed, request
from tests.support.serving import Serving


@pytest.mark.parametrize(
    "kind",
    [
        *("none", "number", "list-of-str", "list-of-none", "no-start", "twice"),
        *("status-word", "status-bytes", "status-long", "status-1xx"),
        *("fields-none", "fields-bytes", "fields-flat", "fields-number", "length-word", "length-negative"),
    ],
)
def test_invalid_results_are_a_500_and_a_line_in_the_log(server: Serving, kind: str) -> None:
    n_said = len(server.said())
    answer = server.ask(f"/nonsense/{kind}")
    assert answer.status == 500 and answer.whole
    said = server.said()[n_said:]
    assert f"/nonsense/{kind}" in said or "Error" in said, said


@pytest.mark.parametrize("kind", INJECTIONS)
def test_a_header_that_breaks_out_is_a_500_and_named_in_the_log(server: Serving, kind: str) -> None:
    n_said = len(server.said())
    answer = server.ask(f"/inject/{kind}")
    assert answer.status == 500 and not answer.all("x-evil") and not answer.all("x-a")
    assert len(server.said()) > n_said


@pytest.mark.parametrize("when", ["before", "after", "first"])
def test_an_exception_is_logged_and_not_sent(server: Serving, when: str) -> None:
    answer = server.ask(f"/raises/{when}")
    assert answer.status == 500 and b"raised" not in answer.body
    assert f"raised {when}" in server.said() and "Traceback" in server.said()


def test_an_exception_after_the_first_bytes_aborts_the_response(server: Serving) -> None:
    # HTTP/1.0 has no chunks: only a reset shows that the body is incomplete.
    with server.connect() as line:
        line.send(request("/raises/late") + request())
        answer = line.answer()
        assert answer.status == 200 and not answer.whole
        with pytest.raises(Closed):
            line.answer()


def test_a_response_can_be_replaced_before_anything_was_sent(server: Serving) -> None:
    answer = server.ask("/replaces")
    assert (answer.status, answer.reason, answer.body, answer.all("x-first")) == (503, b"Later", b"later", [])


def test_an_unknown_page_is_the_applications_404(server: Serving) -> None:
    answer = server.ask("/nowhere")
    assert (answer.status, answer.body, answer.one("content-length")) == (404, b"", b"0")


def test_an_answer_has_one_date(server: Serving) -> None:
    assert len(server.ask("/hello").all("date")) == 1


def test_validate_reports_no_violation(server: Serving) -> None:
    n_said = len(server.said())
    assert server.ask("/validated", b"Content-Length: 5", method="POST", body=b"hello").status == 200
    assert "AssertionError" not in server.said()[n_said:]

"""gunicorn's own timeout replaces a worker of class `onecopy.gunicorn.Worker` that never releases
the GIL."""

from __future__ import annotations

import contextlib
import http.client
from pathlib import Path

import pytest

from tests.support.supervised import Folder, of_command

HANGS = """
import re, sys

plain_app = app

def app(environ, start_response):
    if environ["PATH_INFO"] == "/hold":
        re.match(r"(a+)+$", "a" * 40 + "b")  # the lock is held here
    return plain_app(environ, start_response)
"""


def test_gunicorn_replaces_a_worker_that_holds_the_interpreter(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("1", HANGS)
    words = ["-m", "gunicorn", "-k", "onecopy.gunicorn.Worker", "--no-control-socket"]
    words += ["--timeout", "2", "--bind", "127.0.0.1:0", "--threads", "4", "application:app"]
    with of_command(folder, words) as supervised:
        supervised.serves()
        with contextlib.closing(supervised.connect()) as line:
            line.request("GET", "/hold")
            supervised.until("WORKER TIMEOUT")
            supervised.until("Booting worker")
            assert supervised.ask()[0] == "1"
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                line.getresponse()

"""Prints the conformance table of a server: onecopy's, or the one started by
`ONECOPY_CONFORM_COMMAND` (`tests/support/serving.py`).

python -m tests.serve.table [WORDS OF A ROW]

`ok`: refused, or correct. `len`: accepted where the RFCs permit it. `F`: wrong. `waits`: the server
neither responded nor closed the connection. `DEAD`: the server ended, or no longer responds; the
next row is tested with a new server.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.serve.cases import CASES
from tests.support.cases import Case, Lenient
from tests.support.raw_http import Silent
from tests.support.serving import Serving


def verdict(case: Case, server: Serving) -> tuple[str, str]:
    """Runs one case; returns the word for its result, and the reason."""
    word, why = "ok", ""
    try:
        case.check(server)
    except Lenient as error:
        word, why = "len", str(error)
    except Silent as error:
        word, why = "waits", str(error)
    except Exception as error:
        word, why = "F", f"{type(error).__name__}: {error}"
    try:
        server.must_serve()
    except (AssertionError, OSError) as error:
        word, why = "DEAD", f"{why}; {error}"
    return word, " ".join(why.split())[:160]


def main() -> int:
    """Runs the cases and prints the table; returns 1 if a result is not `ok`."""
    chosen = [case for case in CASES if " ".join(sys.argv[1:]) in case.name]
    server, words = Serving(), Counter[str]()
    try:
        for case in chosen:
            word, why = verdict(case, server)
            words[word] += 1
            print(f"{case.name:36} {word:5} {why}".rstrip(), flush=True)
            if word == "DEAD":
                server.stop()
                server = Serving()
    finally:
        server.stop()
    print(", ".join(f"{word} {n}" for word, n in words.most_common()))
    return int(words["ok"] != len(chosen))


if __name__ == "__main__":
    sys.exit(main())

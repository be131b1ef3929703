"""SQLite's `REGEXP` operator compared with Python's `re`, for patterns that have the same meaning
in both."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onecopy
from tests.support.properties import tried

#: Characters with the same classes and cases in both: no marks, no numbers other than digits.
LETTERS = "abAzZ019_éßλЖ日本😀𝄞٣ \t-"
TEXTS = st.text(LETTERS, max_size=12)
#: A pattern for the `regex` crate, and for `re`.
Pattern = tuple[str, str]


def _same(text: str) -> Pattern:
    return text, text


def _joined(parts: list[Pattern], between: str = "") -> Pattern:
    return between.join(rust for rust, _ in parts), between.join(python for _, python in parts)


def _wrapped(before: str, inner: Pattern, after: str) -> Pattern:
    return f"{before}{inner[0]}{after}", f"{before}{inner[1]}{after}"


def _class(negated: bool, items: list[str]) -> Pattern:
    return _same(f"[{'^' if negated else ''}{''.join(items)}]")


ITEMS = st.sampled_from([*"abzA09_éλ日😀", "a-c", "0-4", "а-я", "\\d", "\\w", "\\s", "\\-", "\\]", "\\^", "\\\\"])
SINGLE = st.one_of(
    st.sampled_from(LETTERS).map(_same),
    st.sampled_from([".", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\.", "\\*", "\\\\", "\\(", "\\$"]).map(_same),
    st.builds(_class, st.booleans(), st.lists(ITEMS, min_size=1, max_size=4)),
)
#: `$` matches before a last newline in Python; `\B` matches an empty text only from CPython 3.14
#: on.
ANCHORS: st.SearchStrategy[Pattern] = st.sampled_from(
    [("^", "^"), ("$", r"\Z"), (r"\b", r"\b"), (r"\B", r"(?:\B|\A\Z)")]
)
TIMES = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{0}", "{2}", "{1,}", "{0,2}", "{1,3}?"])


def _larger(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    group = st.builds(_wrapped, st.sampled_from(["(", "(?:", "(?i:", "(?s:"]), inner, st.just(")"))
    repeated = st.builds(_wrapped, st.just(""), st.one_of(SINGLE, group), TIMES)
    several = st.lists(st.one_of(inner, repeated, ANCHORS), max_size=4).map(_joined)
    either = st.lists(inner, min_size=2, max_size=3).map(lambda parts: _wrapped("(?:", _joined(parts, "|"), ")"))
    return st.one_of(group, repeated, several, either)


PATTERNS = st.recursive(SINGLE, _larger, max_leaves=8)


@pytest.fixture(scope="module")
def sqlite() -> Iterator[onecopy.Connection]:
    con = onecopy.connect("sqlite::memory:")
    yield con
    con.close()


def _matches(con: onecopy.Connection, pattern: str | None, text: str | None) -> object:
    row = con.execute("select ? regexp ?", [text, pattern]).fetchone()
    assert row is not None
    return row[0]


@tried(400)
@given(pattern=PATTERNS, texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_a_pattern_matches_where_it_does_in_python(
    sqlite: onecopy.Connection, pattern: Pattern, texts: list[str]
) -> None:
    for text in texts:
        assert _matches(sqlite, pattern[0], text) == (re.search(pattern[1], text) is not None), (pattern, text)


@tried(400)
@given(pattern=st.text(st.sampled_from("()[]{}*+?|^$\\.-a0,:=!<>PpuxdDwbé😀"), max_size=12), text=TEXTS)
def test_any_text_is_a_pattern_or_an_error_and_the_connection_survives(
    sqlite: onecopy.Connection, pattern: str, text: str
) -> None:
    try:
        outcome = str(_matches(sqlite, pattern, text))
    except onecopy.OperationalError as error:
        outcome = str(error)
    assert outcome in ("0", "1") or outcome.startswith("REGEXP: ")
    assert _matches(sqlite, "^a", "ab") == 1


def test_null_is_null_and_numbers_are_matched_as_text(sqlite: onecopy.Connection) -> None:
    assert _matches(sqlite, None, "a") is _matches(sqlite, "a", None) is _matches(sqlite, None, None) is None
    for number in ("12", "-7", "0.1 + 0.2", "1e20", "1.5e-7", "100.0", "-0.0", "9e999"):
        sql = (
            f"select ({number}) regexp ('^' || replace(replace(cast({number} as text), '.', '\\.'), '+', '\\+') || '$')"
        )
        assert sqlite.execute(sql).fetchone() == (1,), number
    assert sqlite.execute("select x'c3a9' regexp '^é$'").fetchone() == (1,)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "unclosed group"),
        ("a{2,1}", "invalid repetition count range"),
        ("(?=a)", "look-around"),
        (r"(a)\1", "backreferences are not supported"),
        ("[z-a]", "invalid character class range"),
        ("*", "repetition operator missing expression"),
        ("(" * 1000 + "a" + ")" * 1000, "nest"),
        ("(a{1000}){1000}", "size limit"),
        ("(" * 100_000, "unclosed group"),
        ("a" * 1_100_000, "the pattern has 1100000 bytes"),
    ],
)
def test_an_invalid_pattern_is_a_short_error_with_its_reason(
    sqlite: onecopy.Connection, pattern: str, reason: str
) -> None:
    with pytest.raises(onecopy.OperationalError, match=re.escape(reason)) as caught:
        _matches(sqlite, pattern, "a")
    assert str(caught.value).startswith("REGEXP: ") and len(str(caught.value)) < 1000


def test_large_patterns_and_nested_repetitions_use_bounded_memory() -> None:
    code = """if True:
        import resource, onecopy
        con = onecopy.connect("sqlite::memory:")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        def matches(pattern, text):
            try:
                return con.execute("select ? regexp ?", [text, pattern]).fetchone()[0]
            except onecopy.OperationalError:
                return None
        assert matches("(a*)*b", "a" * 100_000) == 0
        assert matches("(a|aa)+$", "a" * 100_000 + "b") == 0
        assert matches("(x+x+)+y", "x" * 100_000) == 0
        assert matches("((((a{2}){2}){2}){2}){2}", "a" * 32) == 1
        for pattern in ("(a{1000}){1000}", r"(\\w{100}){100}", "a|" * 400_000, "a" * 50_000_000):
            assert matches(pattern, "b") is None
        for n in range(40):  # More than are kept.
            assert matches(r"^\\w{50}%d" % n, "b") == 0
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=300, capture_output=True, text=True)
    assert int(done.stdout) < 700, f"{done.stdout} MiB"

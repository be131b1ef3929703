"""Plain values as inputs of the codec benchmarks: short and long text in each script, text with
escapes, numbers, and rows. They are generated with fixed seeds."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import random
import uuid
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from tests.support import table

#: The alphabets of texts; a space is as frequent as the ends of words.
_ASCII = "etaoinshrdlucmfwypvbgkjqxz" * 3 + "ETAOINSHR0123456789" + " " * 14 + ".,-:/"
_LATIN_1 = _ASCII + "éèüöäßñçåøãõúíáó" * 3
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфё" * 3 + "ОЕАИНТСРВЛ" + " " * 16
_CJK = "".join(map(chr, range(0x4E00, 0x4E00 + 900)))
_KANA = "".join(map(chr, range(0x3042, 0x3093)))
_EMOJI = "".join(map(chr, range(0x1F600, 0x1F64F)))

#: Rows of a table: enough that their objects do not fit in a cache.
N_ROWS = 20_000
N_SHORT = 100_000


def _pool(alphabet: str, seed: int, length: int = 1 << 17) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def _cut(pool: str, n: int, shortest: int, longest: int, seed: int) -> list[str]:
    """`n` separate strings of random length, cut from `pool`."""
    draw = random.Random(seed)
    made = []
    for _ in range(n):
        at = draw.randrange(len(pool) - longest)
        made.append(pool[at : at + draw.randint(shortest, longest)])
    return made


def _with_one(made: list[str], characters: str, seed: int) -> list[str]:
    """The texts with one random character of `characters` in each, as in many place names."""
    draw = random.Random(seed)
    out = []
    for text in made:
        at = draw.randrange(len(text))
        out.append(text[:at] + draw.choice(characters) + text[at + 1 :])
    return out


def seed_list() -> list[str]:
    """The list of the example in UltraJSON's documentation: one string, a hundred times."""
    return ["a" * 10] * 100


def ascii_short() -> list[str]:
    """100,000 strings of 4 to 24 letters."""
    return _cut(_pool(_ASCII, 1), N_SHORT, 4, 24, 2)


def latin_1_short() -> list[str]:
    """100,000 short strings of letters, each with an accented letter."""
    return _with_one(_cut(_pool(_LATIN_1, 3), N_SHORT, 4, 24, 4), "éèüöäßñçåø", 5)


def cyrillic_short() -> list[str]:
    """Short strings of Russian letters and spaces."""
    return _with_one(_cut(_pool(_CYRILLIC, 6), N_SHORT, 4, 28, 7), "оеаинт", 8)


def cjk_short() -> list[str]:
    """Short strings of Han characters, as in names and titles."""
    return _cut(_pool(_CJK, 9), N_SHORT, 3, 19, 10)


def emoji_short() -> list[str]:
    """Short strings of emoji, in which one character in ten is a letter or a space."""
    return _with_one(_cut(_pool(_EMOJI * 10 + _ASCII[-80:], 11), N_SHORT, 3, 16, 12), _EMOJI, 13)


def ascii_long() -> list[str]:
    """200 texts of 20,000 letters."""
    return _cut(_pool(_ASCII, 14), 200, 20_000, 20_000, 15)


def cyrillic_long() -> list[str]:
    """100 texts of 20,000 letters."""
    return _cut(_pool(_CYRILLIC, 16), 100, 20_000, 20_000, 17)


def cjk_long() -> list[str]:
    """100 texts of 10,000 Chinese characters, with sentences, paragraphs, and a few numbers and
    Latin words."""
    draw = random.Random(18)
    articles = []
    for _ in range(100):
        parts: list[str] = []
        length = 0
        while length < 10_000:
            sentence = "".join(draw.choices(_CJK, k=draw.randint(10, 50))) + draw.choice("，。，。、；")
            if draw.random() < 0.06:
                sentence += draw.choice((str(draw.randint(1, 2026)), "SQL", "UTF-8"))
            if draw.random() < 0.05:
                sentence += "\n"
            parts.append(sentence)
            length += len(sentence)
        articles.append("".join(parts))
    return articles


def escapes_dense() -> list[str]:
    """Texts in which half of the characters must be escaped, like quoted source code."""
    return _cut(_pool("abcdefgh ()=" + '"\\\n\t"\\' * 2, 19), 30_000, 20, 200, 20)


def escapes_sparse() -> list[str]:
    """Log lines, in which one character in a hundred must be escaped."""
    return _cut(_pool(_ASCII * 6 + '"\n\\\t"\n', 21), 20_000, 40, 300, 22)


def floats() -> list[float]:
    """Doubles with all 17 digits, between 0 and a thousand."""
    draw = random.Random(23)
    return [draw.uniform(-1000, 1000) for _ in range(100_000)]


def decimals() -> list[float]:
    """Prices with two decimals."""
    draw = random.Random(24)
    return [draw.randrange(1_000_000) / 100 for _ in range(100_000)]


def ints() -> list[int]:
    """Integers of one to eighteen digits, some of them negative."""
    draw = random.Random(25)
    return [draw.randrange(10 ** draw.randint(1, 18)) * draw.choice((1, 1, 1, -1)) for _ in range(100_000)]


#: The columns of the rows: a number, four texts, a float, a datetime as text, and NULL.
COLUMNS = ("id", "name", "city", "note", "price", "created", "tag", "parent")


def _tuples(text: Callable[[str], str]) -> list[tuple[Any, ...]]:
    return [
        (
            row.id,
            text(row.name),
            text(row.city),
            text(row.note),
            row.price,
            row.created.isoformat(),
            None if row.tag is None else text(row.tag),
            None,
        )
        for row in table.rows(N_ROWS)
    ]


def _in_script(alphabet: str, seed: int) -> Callable[[str], str]:
    pool = _pool(alphabet, seed)
    draw = random.Random(seed + 1)

    def text(like: str) -> str:
        at = draw.randrange(len(pool) - len(like))
        return pool[at : at + len(like)]

    return text


def rows_mixed_tuples() -> list[tuple[Any, ...]]:
    """The rows of the table in tests/support as tuples: names, cities with accents, notes in many
    scripts."""
    return _tuples(lambda text: text[:1] + text[1:])  # A separate string in each row, as a driver creates it.


def _dicts(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def rows_mixed() -> list[dict[str, Any]]:
    """The rows of `rows_mixed_tuples` as dicts, which share the eight key objects."""
    return _dicts(rows_mixed_tuples())


def rows_ascii() -> list[dict[str, Any]]:
    """The rows of `rows_mixed` with only ASCII in their texts."""
    return _dicts(_tuples(_in_script(_ASCII, 30)))


def rows_cyrillic() -> list[dict[str, Any]]:
    """The rows of `rows_mixed` with Russian letters in their texts."""
    return _dicts(_tuples(_in_script(_CYRILLIC, 26)))


def rows_cjk() -> list[dict[str, Any]]:
    """The rows of `rows_mixed` with Han characters in their texts, which have two thirds of the
    length."""
    cut = _in_script(_CJK, 28)
    return _dicts(_tuples(lambda like: cut(like[: max(1, len(like) * 2 // 3)])))


#: Values of the standard library's types.
N_VALUES = 50_000


def moments() -> list[dt.datetime]:
    """Naive datetimes of 1990 to 2040, to the millisecond."""
    draw = random.Random(31)
    first = dt.datetime(1990, 1, 1)
    return [first + dt.timedelta(milliseconds=draw.randrange(50 * 365 * 86_400_000)) for _ in range(N_VALUES)]


def moments_utc() -> list[dt.datetime]:
    """The datetimes of `moments` in `timezone.utc`."""
    return [at.replace(tzinfo=dt.timezone.utc) for at in moments()]


def moments_zone() -> list[dt.datetime]:
    """The datetimes of `moments` in a `zoneinfo` time zone with daylight saving time."""
    zone = ZoneInfo("Europe/Vienna")
    return [at.replace(tzinfo=zone) for at in moments()]


def uuids() -> list[uuid.UUID]:
    """Random UUIDs."""
    draw = random.Random(32)
    return [uuid.UUID(int=draw.getrandbits(128), version=4) for _ in range(N_VALUES)]


def bytes_short() -> list[bytes]:
    """Byte strings of 8 to 200 bytes, like hashes, keys and small images."""
    draw = random.Random(33)
    return [draw.randbytes(draw.randint(8, 200)) for _ in range(N_VALUES)]


@dataclasses.dataclass
class City:
    """A dataclass with three fields."""

    id: int
    name: str
    population: float


def cities() -> list[City]:
    """Instances of the dataclass `City`."""
    draw = random.Random(34)
    return [City(draw.randrange(1 << 30), name, draw.random() * 1e7) for name in ascii_short()[:N_VALUES]]


class Status(enum.Enum):
    """An enumeration whose values are strings."""

    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


def statuses() -> list[Status]:
    """Random members of the enumeration `Status`."""
    return random.Random(35).choices(list(Status), k=N_VALUES)


def rows_moments() -> list[dict[str, Any]]:
    """The rows of `rows_mixed` with a naive `datetime` instead of its text, as drivers return
    it."""
    return [{**row, "created": dt.datetime.fromisoformat(row["created"])} for row in rows_mixed()]

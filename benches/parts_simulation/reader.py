"""The view of a reader: the conditions on which it may rely at any time."""

from __future__ import annotations

from collections.abc import Mapping

from benches.parts_simulation.folder import MANIFEST, STAGING, Folder, Manifest, Rows, digest
from benches.parts_simulation.protocol import Plan
from benches.parts_simulation.rows import Difference, Range, difference


def read(folder: Folder, n_rows: int) -> Difference:
    """Compares the rows in the files that the manifest lists with the whole result.

    Without a manifest the reader finds nothing, and all rows are lost.
    """
    manifest = folder.contents(MANIFEST)
    found: list[Range] = []
    for entry in manifest.entries if isinstance(manifest, Manifest) else ():
        contents = folder.contents(entry.name)
        found += contents.ranges if isinstance(contents, Rows) else ()
    return difference(found, n_rows)


def problem(folder: Folder, plans: Mapping[int, Plan]) -> str | None:
    """The first condition that does not hold; `None` if all hold.

    A folder without a manifest is incomplete, and a reader sees this. If there is a manifest, its
    files exist with the listed hashes, they contain each row of the plan once, and the folder has
    no other file of rows.
    """
    if MANIFEST not in folder.names:
        return None
    manifest = folder.contents(MANIFEST)
    if not isinstance(manifest, Manifest):
        return "the manifest is truncated"
    for entry in manifest.entries:
        contents = folder.contents(entry.name)
        if contents is None:
            return f"the manifest lists {entry.name}, which is missing or empty"
        if digest(contents) != entry.digest:
            return f"the hash of {entry.name} is not that of the manifest"
    n_lost, n_doubled = read(folder, plans[manifest.plan].n_rows)
    if n_lost or n_doubled:
        return f"{n_lost} rows are lost and {n_doubled} doubled"
    expected = {MANIFEST, *(entry.name for entry in manifest.entries)}
    others = [name for name in folder.names if not name.startswith(STAGING) and name not in expected]
    return f"the manifest does not list {others[0]}" if others else None

"""The steps of `onecopy export --plan … --part i/N --resume`, as a generator that yields before each
system call. A process may be killed at each `yield`, and any other process may continue there.

The steps and their order are those of `Parts::export` (`crates/cli/src/export_parts.rs`), `Staging`
(`crates/export/src/staging.rs`) and `FileTarget::write` (`file.rs`). Three things are simpler: one
`write` of a manifest is one step, parts of one process are written one after the other, and the
settings of an export are always the same.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from benches.parts_simulation.folder import MANIFEST, STAGING, Entry, File, Folder, Manifest, Rows, digest
from benches.parts_simulation.rows import Range, split


class Kind(Enum):
    """The kinds of steps, which differ in their duration."""

    START = "the start of a process"
    CALL = "a system call that needs no disk"
    CONNECT = "the set-up of a connection"
    READ = "reading rows"
    SYNC = "the sync of a file or directory, or the commit of a transaction"
    MOVE = "the move of a file into the target folder"


class Step(NamedTuple):
    """The next step of a process; a process that reads has the part and the number of rows."""

    kind: Kind
    part: int = -1
    n_rows: int = 0


class Outcome(Enum):
    """The end of a process."""

    DONE = "the part is complete"
    BUSY = "another process has the lock"
    REFUSED = "the server has no free connection, or the folder has another export"


#: The steps of a process. False is sent to it if the server has no free connection.
Steps = Generator[Step, bool | None, Outcome]
START, CALL, CONNECT, SYNC, MOVE = (Step(k) for k in (Kind.START, Kind.CALL, Kind.CONNECT, Kind.SYNC, Kind.MOVE))


@dataclass(frozen=True)
class Plan:
    """A plan: its number, which represents its hash, and the rows of each part."""

    number: int
    parts: tuple[Range, ...]
    #: `--overwrite`: it may replace a complete export of another plan.
    replaces: bool = False

    @property
    def n_rows(self) -> int:
        """The number of rows of the result."""
        return self.parts[-1].stop if self.parts else 0


@dataclass(frozen=True)
class Protocol:
    """The precautions that are taken."""

    name: str = "the protocol of onecopy"
    #: The manifest of a part gets its name after the file.
    file_before_entry: bool = True
    #: The manifest of the export gets its name after all files.
    manifest_last: bool = True
    #: The manifest of an earlier export is removed before files are moved.
    removes_old_manifest: bool = True
    #: Only one process writes a part.
    has_part_lock: bool = True
    #: Writers of parts share the lock of the folder; the process that moves files has it exclusively.
    has_folder_lock: bool = True
    #: The process that moves files has read the manifests of the parts since it has the lock.
    reads_entries_locked: bool = True
    #: A file is synced before it gets its name.
    syncs_files: bool = True
    #: The directory is synced after a file got its name.
    syncs_names: bool = True
    #: A part is complete if its manifest exists; otherwise, if its file exists.
    needs_entry: bool = True
    #: The file system keeps the order of changes of names.
    keeps_order: bool = True


PROTOCOL = Protocol()
#: The protocol with one defect each.
MUTATIONS = (
    replace(PROTOCOL, name="manifest of a part before its file", file_before_entry=False),
    replace(PROTOCOL, name="manifest of the export before the files", manifest_last=False),
    replace(PROTOCOL, name="manifest of the replaced export remains", removes_old_manifest=False),
    replace(PROTOCOL, name="no lock of a part", has_part_lock=False),
    replace(PROTOCOL, name="no lock of the folder", has_folder_lock=False),
    replace(PROTOCOL, name="manifests of parts are read before the lock", reads_entries_locked=False),
    replace(PROTOCOL, name="files are not synced", syncs_files=False),
    replace(PROTOCOL, name="directories are not synced", syncs_names=False),
    replace(PROTOCOL, name="a part is complete if its file exists", needs_entry=False),
    replace(PROTOCOL, name="a file system that does not keep the order", keeps_order=False),
)


def _file_name(part: int) -> str:
    return f"part-{part:05}.parquet"


def _entry_name(part: int) -> str:
    return f"{STAGING}{_file_name(part)}.manifest.json"


def staging_plan(folder: Folder) -> int | None:
    """The plan of the unfinished export; `None` if there is none."""
    found = folder.contents(STAGING)
    return found if isinstance(found, int) else None


def is_exported(folder: Folder, plan: Plan) -> bool:
    """Returns true if the folder has the manifest of this plan, and no unfinished export."""
    found = folder.contents(MANIFEST)
    return isinstance(found, Manifest) and found.plan == plan.number and STAGING not in folder.names


def complete(folder: Folder, part: int, protocol: Protocol = PROTOCOL) -> Entry | None:
    """The manifest of a part, if it exists and the file has the listed size."""
    name = _file_name(part)
    contents = folder.contents(STAGING + name) or folder.contents(name)
    entry = folder.contents(_entry_name(part))
    if not protocol.needs_entry and isinstance(contents, Rows):
        entry = Entry(name, contents.n_rows, digest(contents))
    is_whole = isinstance(entry, Entry) and isinstance(contents, Rows) and contents.n_rows == entry.n_rows
    return entry if is_whole and isinstance(entry, Entry) else None


def _exported_names(folder: Folder) -> list[str]:
    return [name for name in folder.names if not name.startswith(STAGING)]


def export(
    folder: Folder, plan: Plan, part: int | None, process: int, protocol: Protocol = PROTOCOL, n_pieces: int = 2
) -> Steps:
    """The steps of the export of one part, or of all that are missing (`None`: without `--part`).

    The process that finds all parts complete moves them into the folder. The rows of a part are
    read in `n_pieces` pieces.
    """
    yield START
    if is_exported(folder, plan):
        return Outcome.DONE
    yield CALL
    if protocol.has_folder_lock and not folder.lock("folder", process, shared=part is not None):
        return Outcome.BUSY
    yield CALL
    if STAGING not in folder.names:
        if _exported_names(folder) and not plan.replaces:
            return Outcome.REFUSED
        yield CALL
        if STAGING not in folder.names:  # Another process may have begun the same export.
            folder.create(STAGING, plan.number, is_synced=True)
            yield from _sync_names(folder, protocol)
    if staging_plan(folder) != plan.number:
        return Outcome.REFUSED
    is_open = []
    for each in range(len(plan.parts)) if part is None else [part]:
        yield CALL
        if complete(folder, each, protocol) is None:
            is_open.append(each)
    if is_open and (yield CONNECT) is False:
        return Outcome.REFUSED
    for each in is_open:
        yield CALL
        if protocol.has_part_lock and not folder.lock(f"part {each}", process):
            return Outcome.BUSY
        yield from _write_part(folder, plan, each, process, protocol, n_pieces)
        folder.unlock(f"part {each}", process)
    yield from _finish(folder, plan, process, protocol)
    return Outcome.DONE


def _write_part(
    folder: Folder, plan: Plan, part: int, process: int, protocol: Protocol, n_pieces: int
) -> Generator[Step, bool | None]:
    """Writes the file of a part and its manifest, both with temporary names first."""
    name, entry_name = STAGING + _file_name(part), _entry_name(part)
    temporary = f"{name}.{process}.partial" if protocol.needs_entry else name
    file = folder.create(temporary, Rows((), process))
    pieces = split(plan.parts[part], n_pieces)
    for piece in pieces:
        yield Step(Kind.READ, part, piece.n_rows)
        folder.append(file, piece)
    # The number of rows and the hash are those of the bytes that were written.
    rows = Rows(tuple(pieces), process)
    yield CALL
    entry = folder.create(f"{entry_name}.{process}.partial", Entry(_file_name(part), rows.n_rows, digest(rows)))
    yield from _sync(entry, protocol)
    yield CALL
    folder.remove([entry_name])
    commits = [(file, temporary, name), (entry, f"{entry_name}.{process}.partial", entry_name)]
    for each in commits if protocol.file_before_entry else reversed(commits):
        yield from _commit(folder, *each, protocol)


def _finish(folder: Folder, plan: Plan, process: int, protocol: Protocol) -> Generator[Step, bool | None]:
    """Moves the files into the folder if all parts are complete and no process writes one."""
    entries = yield from _entries(folder, plan, protocol)
    if entries is None:
        return
    yield CALL
    if protocol.has_folder_lock and not folder.lock("folder", process):
        return
    yield CALL
    if STAGING not in folder.names:  # Another process has finished the export.
        return
    if protocol.reads_entries_locked:
        entries = yield from _entries(folder, plan, protocol)
        if entries is None:
            return
    staged = folder.contents(STAGING + MANIFEST)
    manifest = staged if isinstance(staged, Manifest) else Manifest(plan.number, entries)
    if staged is None:
        yield from _write_manifest(folder, STAGING + MANIFEST, manifest, process, protocol)
    yield CALL
    if folder.contents(MANIFEST) != manifest:
        yield from _move(folder, manifest, process, protocol)
    yield CALL
    folder.remove([name for name in folder.names if name.startswith(STAGING)])


def _entries(
    folder: Folder, plan: Plan, protocol: Protocol
) -> Generator[Step, bool | None, tuple[Entry, ...] | None]:
    """Reads the manifests of all parts; `None` if one is missing."""
    found = []
    for part in range(len(plan.parts)):
        yield CALL
        entry = complete(folder, part, protocol)
        if entry is None:
            return None
        found.append(entry)
    return tuple(found)


def _move(folder: Folder, manifest: Manifest, process: int, protocol: Protocol) -> Generator[Step, bool | None]:
    """Moves the files of an export into the folder, and writes its manifest last."""
    if protocol.removes_old_manifest:
        folder.remove([MANIFEST])
    if not protocol.manifest_last:
        yield from _write_manifest(folder, MANIFEST, manifest, process, protocol)
    for entry in manifest.entries:
        yield MOVE
        if STAGING + entry.name in folder.names:
            folder.rename(STAGING + entry.name, entry.name)
        elif entry.name not in folder.names:
            raise FileNotFoundError(entry.name)
    for name in set(_exported_names(folder)) - {MANIFEST} - {entry.name for entry in manifest.entries}:
        yield CALL
        folder.remove([name])
    yield from _sync_names(folder, protocol)
    if protocol.manifest_last:
        yield from _write_manifest(folder, MANIFEST, manifest, process, protocol)


def _write_manifest(
    folder: Folder, name: str, manifest: Manifest, process: int, protocol: Protocol
) -> Generator[Step, bool | None]:
    yield CALL
    # In the staging folder, because a name in the target folder would be a file of the export.
    temporary = f"{STAGING}{process}.partial"
    file = folder.create(temporary, manifest)
    yield from _commit(folder, file, temporary, name, protocol)


def _commit(
    folder: Folder, file: File, temporary: str, name: str, protocol: Protocol
) -> Generator[Step, bool | None]:
    """Syncs a file, gives it its name, and syncs the directory."""
    yield from _sync(file, protocol)
    if temporary != name:
        yield CALL
        folder.rename(temporary, name)
    yield from _sync_names(folder, protocol)


def _sync(file: File, protocol: Protocol) -> Generator[Step, bool | None]:
    if protocol.syncs_files:
        yield SYNC
        file.is_synced = True


def _sync_names(folder: Folder, protocol: Protocol) -> Generator[Step, bool | None]:
    if protocol.syncs_names:
        yield SYNC
        folder.sync_names()

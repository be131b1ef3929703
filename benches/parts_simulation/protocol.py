"""The steps of an export in parts, as generators that yield before each system call.

A process may be killed at each `yield`, and any other process may continue there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from benches.parts_simulation.folder import (
    MANIFEST,
    OWNER,
    STAGING,
    Contents,
    Entry,
    File,
    Folder,
    Manifest,
    Owner,
    Rows,
    digest,
)
from benches.parts_simulation.rows import Range, split


class Kind(Enum):
    """The kinds of steps, which differ in their duration."""

    START = "the start of a process"
    CALL = "a system call that needs no disk"
    CONNECT = "the set-up of a connection"
    READ = "reading rows"
    SYNC = "the sync of a file or directory"
    COMMIT = "the commit of a transaction of a target database"


class Step(NamedTuple):
    """The next step of a process, and the number of rows if it reads rows."""

    kind: Kind
    n_rows: int = 0


class Outcome(Enum):
    """The end of a process."""

    DONE = "the part, or the export, is complete"
    BUSY = "another process has the lock"
    REFUSED = "the server has no free connection"
    INCOMPLETE = "parts are missing"
    OTHER_PLAN = "the staging folder belongs to another plan"
    FAILED = "a file has disappeared"


#: The steps of a process. True is sent to it after a step that has succeeded.
Steps = Generator[Step, bool, Outcome]

START, CALL, CONNECT, SYNC, COMMIT = (
    Step(kind) for kind in (Kind.START, Kind.CALL, Kind.CONNECT, Kind.SYNC, Kind.COMMIT)
)


@dataclass(frozen=True)
class Plan:
    """A plan: its number, which represents its hash, and the rows of each part."""

    number: int
    parts: tuple[Range, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows of the result."""
        return self.parts[-1].stop if self.parts else 0


@dataclass(frozen=True)
class Protocol:
    """The order of the steps, and the precautions that are taken."""

    name: str = "export --part"
    #: The entry of a part gets its name after the file.
    file_before_entry: bool = True
    #: The manifest is moved after all files.
    manifest_last: bool = True
    #: Only one process exports a part.
    has_part_lock: bool = True
    #: Exporters of parts share the lock of the folder; the process that finishes has it exclusively.
    has_folder_lock: bool = True
    #: The system releases the locks of a process that ends, as those of flock.
    locks_end_with_process: bool = True
    #: A file is synced before it gets its name.
    syncs_files: bool = True
    #: A directory is synced after each change on which a later change depends.
    syncs_names: bool = True
    #: The removal of the manifest of an earlier export is synced before other files are moved.
    syncs_removal: bool = True
    #: A file has a temporary name until it is complete.
    has_temporary_names: bool = True
    #: A part is complete if its entry exists; otherwise, if its file exists.
    needs_entry: bool = True


PROTOCOL = Protocol()

#: The protocol with one defect each.
MUTATIONS = (
    replace(PROTOCOL, name="entry before its file", file_before_entry=False),
    replace(PROTOCOL, name="manifest before the files", manifest_last=False),
    replace(PROTOCOL, name="no lock of a part", has_part_lock=False),
    replace(PROTOCOL, name="no lock of the folder", has_folder_lock=False),
    replace(PROTOCOL, name="locks that outlive their process", locks_end_with_process=False),
    replace(PROTOCOL, name="files are not synced", syncs_files=False),
    replace(PROTOCOL, name="directories are not synced", syncs_names=False),
    replace(PROTOCOL, name="the removal of an old manifest is not synced", syncs_removal=False),
    replace(PROTOCOL, name="no temporary names, a file is complete if it exists", has_temporary_names=False,
            needs_entry=False),
)  # fmt: skip


def file_name(part: int) -> str:
    """The name of the file of a part."""
    return f"part-{part:05}.parquet"


def is_complete(folder: Folder, part: int, protocol: Protocol = PROTOCOL) -> bool:
    """Returns true if the part needs no further export."""
    if protocol.needs_entry:
        return isinstance(folder.contents(_entry_name(part)), Entry)
    return STAGING + file_name(part) in folder.names


def _entry_name(part: int) -> str:
    return f"{STAGING}{file_name(part)}.entry"


def is_exported(folder: Folder, plan: Plan) -> bool:
    """Returns true if the folder has the manifest of this plan."""
    found = folder.contents(MANIFEST)
    return isinstance(found, Manifest) and found.plan == plan.number


def _write(folder: Folder, name: str, contents: Contents, process: int, protocol: Protocol) -> tuple[str, File]:
    """Creates a file with a temporary name; returns this name and the open file."""
    temporary = f"{name}.{process}.partial" if protocol.has_temporary_names else name
    return temporary, folder.create(temporary, contents)


def _commit(folder: Folder, written: tuple[str, File], name: str, protocol: Protocol) -> Generator[Step, bool, None]:
    """Syncs a file, gives it its name, and syncs the directory."""
    temporary, file = written
    if protocol.syncs_files:
        yield SYNC
        file.is_synced = True
    if protocol.has_temporary_names:
        yield CALL
        folder.rename(temporary, name)
    if protocol.syncs_names:
        yield SYNC
        folder.sync_names()


def export_part(
    folder: Folder, plan: Plan, part: int, process: int, protocol: Protocol = PROTOCOL, n_pieces: int = 2
) -> Steps:
    """The steps of `onecopy export --plan … --part`; the rows are read in `n_pieces` pieces."""
    yield START
    if protocol.has_folder_lock and not folder.lock("folder", process, shared=True):
        return Outcome.BUSY
    yield CALL
    if is_exported(folder, plan):
        return Outcome.DONE
    yield CALL
    if folder.staging_plan is None:
        # Written under a temporary name and synced: another process relies on it once it exists.
        folder.create(OWNER, Owner(plan.number)).is_synced = protocol.syncs_files
        yield from _sync_names(folder, protocol)
    elif folder.staging_plan != plan.number:
        return Outcome.OTHER_PLAN
    yield CALL
    if protocol.has_part_lock and not folder.lock(f"part {part}", process):
        return Outcome.BUSY
    yield CALL
    if is_complete(folder, part, protocol):
        return Outcome.DONE
    if not (yield CONNECT):
        return Outcome.REFUSED
    name = file_name(part)
    file = _write(folder, STAGING + name, Rows((), process), process, protocol)
    for piece in split(plan.parts[part], n_pieces):
        yield Step(Kind.READ, piece.n_rows)
        folder.append(*file, piece)
    # The number of rows and the hash are those of the bytes that were written.
    rows = Rows(tuple(split(plan.parts[part], n_pieces)), process)
    yield CALL
    entry = _write(folder, _entry_name(part), Entry(name, rows.n_rows, digest(rows)), process, protocol)
    if protocol.file_before_entry:
        yield from _commit(folder, file, STAGING + name, protocol)
        yield from _commit(folder, entry, _entry_name(part), protocol)
    else:
        yield from _commit(folder, entry, _entry_name(part), protocol)
        yield from _commit(folder, file, STAGING + name, protocol)
    yield CALL  # The process reports its success, or dies before.
    return Outcome.DONE


def finish(folder: Folder, plan: Plan, process: int, protocol: Protocol = PROTOCOL) -> Steps:
    """The steps that move a complete export into the folder, or complete such a move."""
    yield START
    if protocol.has_folder_lock and not folder.lock("folder", process):
        return Outcome.BUSY
    yield CALL
    if not is_exported(folder, plan):
        if folder.staging_plan is None:
            return Outcome.INCOMPLETE
        if folder.staging_plan != plan.number:
            return Outcome.OTHER_PLAN
        yield CALL
        manifest = folder.contents(STAGING + MANIFEST)
        if not isinstance(manifest, Manifest):
            found = _entries(folder, plan, protocol)
            if found is None:
                return Outcome.INCOMPLETE
            manifest = Manifest(plan.number, found)
            yield CALL
            written = _write(folder, STAGING + MANIFEST, manifest, process, protocol)
            yield from _commit(folder, written, STAGING + MANIFEST, protocol)
        yield from _move(folder, manifest, protocol)
    if folder.staging_plan == plan.number:
        for name in [name for name in folder.names if name.startswith(STAGING) and name != OWNER]:
            yield CALL
            folder.remove(name)
        # An entry must not reappear in the staging folder of another plan.
        yield from _sync_names(folder, protocol)
        yield CALL
        folder.remove(OWNER)
        yield from _sync_names(folder, protocol)
    return Outcome.DONE


def _entries(folder: Folder, plan: Plan, protocol: Protocol) -> tuple[Entry, ...] | None:
    """The entries of all parts; `None` if one is missing."""
    found = []
    for part in range(len(plan.parts)):
        entry = folder.contents(_entry_name(part))
        if not protocol.needs_entry and is_complete(folder, part, protocol):
            contents = folder.contents(STAGING + file_name(part))
            n_rows = contents.n_rows if isinstance(contents, Rows) else 0
            entry = Entry(file_name(part), n_rows, digest(contents))
        if not isinstance(entry, Entry):
            return None
        found.append(entry)
    return tuple(found)


def _move(folder: Folder, manifest: Manifest, protocol: Protocol) -> Generator[Step, bool, None]:
    """Moves the files of an export into the folder, its manifest last."""
    # The manifest of an earlier export must not be next to other files at any time.
    yield CALL
    folder.remove(MANIFEST)
    if protocol.syncs_removal:
        yield from _sync_names(folder, protocol)
    if not protocol.manifest_last:
        yield CALL
        folder.rename(STAGING + MANIFEST, MANIFEST)
    for entry in manifest.entries:
        yield CALL
        # It is missing if a process that was killed has moved it.
        if STAGING + entry.name in folder.names:
            folder.rename(STAGING + entry.name, entry.name)
    expected = {entry.name for entry in manifest.entries}
    for name in [name for name in folder.names if not name.startswith(STAGING) and name != MANIFEST]:
        if name not in expected:
            yield CALL
            folder.remove(name)
    yield from _sync_names(folder, protocol)
    if protocol.manifest_last:
        yield CALL
        folder.rename(STAGING + MANIFEST, MANIFEST)
        yield from _sync_names(folder, protocol)


def _sync_names(folder: Folder, protocol: Protocol) -> Generator[Step, bool, None]:
    if protocol.syncs_names:
        yield SYNC
        folder.sync_names()

"""The steps of `onecopy export --plan … --part i/N --resume`, as a generator that yields before each
system call. A process may be killed at each `yield`, and any other process may continue there.

The steps and their order are those of `Parts::export` (`crates/cli/src/export_parts.rs`), `Staging`
(`crates/export/src/staging.rs`) and `FileTarget::write` (`file.rs`). The model is simpler: the
`write` of a manifest is one step, and so is reading those of all parts; a process writes its parts
one after the other; the settings of an export are always the same.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from benches.parts_simulation.folder import File, Folder, Rows
from benches.parts_simulation.rows import Range, difference, split

#: The folder of the unfinished export: the prefix of the names in it, and a file with its plan.
STAGING = ".onecopy-export/"
MANIFEST = "manifest.json"


class Kind(Enum):
    """The kinds of steps, which differ in their duration."""

    START = "the start of a process"
    CALL = "a system call that needs no disk"
    CONNECT = "the set-up of a connection"
    READ = "reading rows"
    SYNC = "the sync of a file or directory, or the commit of a transaction"
    MOVE = "the move of a file into the target folder"


class Step(NamedTuple):
    """The next step of a process; if it reads, the part and the number of rows."""

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


@dataclass(frozen=True)
class Entry:
    """The manifest of a part: its file, the number of rows, and the hash."""

    name: str
    n_rows: int
    digest: int


@dataclass(frozen=True)
class Manifest:
    """The manifest of a whole export: its plan and the entries of all files."""

    plan: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Protocol:
    """The precautions that are taken."""

    name: str = "the protocol of onecopy"
    #: The manifest of the export gets its name after all files.
    manifest_last: bool = True
    #: Only one process writes a part.
    has_part_lock: bool = True
    #: Writers of parts share the lock of the folder; the process that moves files has it exclusively.
    has_folder_lock: bool = True
    #: The process that moves files has read the manifests of the parts after it got the lock.
    reads_entries_locked: bool = True
    #: A file is synced before it gets its name.
    syncs_files: bool = True
    #: A part is complete if its manifest exists; otherwise, if its file exists.
    needs_entry: bool = True
    #: The file system keeps the order of changes of names.
    keeps_order: bool = True


PROTOCOL = Protocol()
#: The protocol with one defect each.
MUTATIONS = (
    replace(PROTOCOL, name="manifest of the export before the files", manifest_last=False),
    replace(PROTOCOL, name="no lock of a part", has_part_lock=False),
    replace(PROTOCOL, name="no lock of the folder", has_folder_lock=False),
    replace(PROTOCOL, name="manifests of parts are read before the lock", reads_entries_locked=False),
    replace(PROTOCOL, name="files are not synced", syncs_files=False),
    replace(PROTOCOL, name="a part is complete if its file exists", needs_entry=False),
    replace(PROTOCOL, name="a file system that does not keep the order", keeps_order=False),
)


def is_exported(folder: Folder, plan: Plan) -> bool:
    """Returns true if the folder has the manifest of this plan, and no unfinished export."""
    found = folder.contents(MANIFEST)
    return isinstance(found, Manifest) and found.plan == plan.number and STAGING not in folder.names


def _exported_names(folder: Folder) -> set[str]:
    return {name for name in folder.names if not name.startswith(STAGING)}


def exported_rows(folder: Folder) -> list[Range]:
    """The rows in the files that the manifest lists; none if there is no manifest."""
    manifest = folder.contents(MANIFEST)
    names = [entry.name for entry in manifest.entries] if isinstance(manifest, Manifest) else []
    files = [found for name in names if isinstance(found := folder.contents(name), Rows)]
    return [rows for file in files for rows in file.ranges]


def problem(folder: Folder, plans: Mapping[int, Plan]) -> str | None:
    """The first condition of a reader that does not hold; `None` if all hold.

    A folder without a manifest is incomplete, and a reader sees this. If there is a manifest, its
    files exist with the listed hashes, they contain each row of the plan once, and the folder has
    no other file.
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
        if hash(contents) != entry.digest:
            return f"the hash of {entry.name} is not that of the manifest"
    n_lost, n_doubled = difference(exported_rows(folder), plans[manifest.plan].parts[-1].stop)
    if n_lost or n_doubled:
        return f"{n_lost} rows are lost and {n_doubled} doubled"
    others = _exported_names(folder) - {MANIFEST, *(entry.name for entry in manifest.entries)}
    return f"the manifest does not list {min(others)}" if others else None


def complete(folder: Folder, part: int, protocol: Protocol = PROTOCOL) -> Entry | None:
    """The manifest of a part, if it exists and the file has the listed size."""
    name = _file_name(part)
    contents = folder.contents(STAGING + name) or folder.contents(name)
    if not isinstance(contents, Rows):
        return None
    if not protocol.needs_entry:
        return Entry(name, contents.n_rows, hash(contents))
    entry = folder.contents(_entry_name(part))
    return entry if isinstance(entry, Entry) and contents.n_rows == entry.n_rows else None


def _file_name(part: int) -> str:
    return f"part-{part:05}.parquet"


def _entry_name(part: int) -> str:
    return f"{STAGING}{_file_name(part)}.manifest.json"


@dataclass(frozen=True)
class Exporter:
    """A process that exports one part, or all that are missing (`part` is `None`: without `--part`).

    The rows of a part are read in `n_pieces` pieces.
    """

    folder: Folder
    plan: Plan
    part: int | None
    process: int
    protocol: Protocol = PROTOCOL
    n_pieces: int = 2

    def steps(self) -> Steps:
        """The steps. The process that finds all parts complete moves them into the folder."""
        folder, plan = self.folder, self.plan
        yield START
        if is_exported(folder, plan):
            return Outcome.DONE
        yield CALL
        if self.protocol.has_folder_lock and not folder.lock("folder", self.process, shared=self.part is not None):
            return Outcome.BUSY
        yield CALL
        if STAGING not in folder.names:
            if _exported_names(folder) and not plan.replaces:
                return Outcome.REFUSED
            yield CALL
            if STAGING not in folder.names:  # Another process may have begun the same export.
                folder.create(STAGING, plan.number, is_synced=True)
                yield SYNC
                folder.sync_names()
        if folder.contents(STAGING) != plan.number:
            return Outcome.REFUSED
        is_open = []
        for part in range(len(plan.parts)) if self.part is None else [self.part]:
            yield CALL
            if complete(folder, part, self.protocol) is None:
                is_open.append(part)
        if is_open and (yield CONNECT) is False:
            return Outcome.REFUSED
        for part in is_open:
            yield CALL
            if self.protocol.has_part_lock and not folder.lock(f"part {part}", self.process):
                return Outcome.BUSY
            yield from self._write_part(part)
            folder.release(self.process, f"part {part}")
        yield from self._finish()
        return Outcome.DONE

    def _write_part(self, part: int) -> Generator[Step]:
        """Writes the file of a part and its manifest, both with temporary names first."""
        name, entry_name = STAGING + _file_name(part), _entry_name(part)
        temporary = f"{name}.{self.process}.partial" if self.protocol.needs_entry else name
        rows = Rows((), self.process)
        file = self.folder.create(temporary, rows)
        for piece in split(self.plan.parts[part], self.n_pieces):
            yield Step(Kind.READ, part, piece.n_rows)
            file.contents = rows = Rows((*rows.ranges, piece), self.process)
        yield CALL
        # The number of rows and the hash are those of the bytes that were written.
        temporary_entry = f"{entry_name}.{self.process}.partial"
        entry = self.folder.create(temporary_entry, Entry(_file_name(part), rows.n_rows, hash(rows)))
        yield from self._sync(entry)
        yield CALL
        self.folder.remove([entry_name])
        yield from self._commit(file, temporary, name)
        yield from self._commit(entry, temporary_entry, entry_name)

    def _finish(self) -> Generator[Step]:
        """Moves the files into the folder if all parts are complete and no process writes one."""
        folder = self.folder
        yield CALL
        entries = self._entries()
        if entries is None:
            return
        yield CALL
        if self.protocol.has_folder_lock and not folder.lock("folder", self.process):
            return
        yield CALL
        if STAGING not in folder.names:  # Another process has finished the export.
            return
        if self.protocol.reads_entries_locked:
            entries = self._entries()
            if entries is None:
                return
        manifest = folder.contents(STAGING + MANIFEST)
        if manifest is None:
            manifest = Manifest(self.plan.number, entries)
            yield from self._write(manifest, STAGING + MANIFEST)
        yield CALL
        if folder.contents(MANIFEST) != manifest:
            yield from self._move(manifest)
        yield CALL
        folder.remove([name for name in folder.names if name.startswith(STAGING)])

    def _entries(self) -> tuple[Entry, ...] | None:
        """The manifests of all parts; `None` if one is missing, which the last ones are for longest."""
        found = []
        for part in reversed(range(len(self.plan.parts))):
            entry = complete(self.folder, part, self.protocol)
            if entry is None:
                return None
            found.append(entry)
        return tuple(reversed(found))

    def _move(self, manifest: Manifest) -> Generator[Step]:
        """Moves the files of an export into the folder, and writes its manifest last."""
        folder = self.folder
        folder.remove([MANIFEST])
        if not self.protocol.manifest_last:
            yield from self._write(manifest, MANIFEST)
        for entry in manifest.entries:
            yield MOVE
            # A process that was killed may have moved it.
            if STAGING + entry.name in folder.names or entry.name not in folder.names:
                folder.rename(STAGING + entry.name, entry.name)
        for name in _exported_names(folder) - {MANIFEST, *(entry.name for entry in manifest.entries)}:
            yield CALL
            folder.remove([name])
        yield SYNC
        folder.sync_names()
        if self.protocol.manifest_last:
            yield from self._write(manifest, MANIFEST)

    def _write(self, manifest: Manifest, name: str) -> Generator[Step]:
        yield CALL
        # The temporary name is in the staging folder, because readers ignore names there.
        temporary = f"{STAGING}{self.process}.partial"
        yield from self._commit(self.folder.create(temporary, manifest), temporary, name)

    def _commit(self, file: File, temporary: str, name: str) -> Generator[Step]:
        """Syncs a file, gives it its name, and syncs the directory."""
        yield from self._sync(file)
        if temporary != name:
            yield CALL
            self.folder.rename(temporary, name)
        yield SYNC
        self.folder.sync_names()

    def _sync(self, file: File) -> Generator[Step]:
        if self.protocol.syncs_files:
            yield SYNC
            file.is_synced = True

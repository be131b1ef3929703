"""A folder of files in memory, with the effects of a kill and of a power failure.

* A process that is killed leaves all that it has written. Its locks end, as those of flock do.
* A power failure stops all processes. Of a file that was not synced, any number of the last rows
  is missing. Of the changes of names since the last sync of the directory, any subset is missing:
  file systems with a journal keep their order, but POSIX does not require it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from benches.parts_simulation.rows import Range

#: The prefix of the names in the staging folder.
STAGING = "staging/"
#: The name of the manifest, in the folder and in its staging folder.
MANIFEST = "manifest.json"
#: The name of the file that names the plan of the staging folder.
OWNER = STAGING + "plan"


@dataclass(frozen=True)
class Rows:
    """The contents of a file of rows."""

    ranges: tuple[Range, ...]
    #: The attempt that wrote it. The same rows in another order are other bytes with another hash.
    attempt: int
    #: False if rows at the end are missing.
    is_whole: bool = True

    @property
    def n_rows(self) -> int:
        """The number of rows in the file."""
        return sum(rows.n_rows for rows in self.ranges)


@dataclass(frozen=True)
class Entry:
    """The contents of an entry: the number of rows and the hash of one file."""

    name: str
    n_rows: int
    digest: int


@dataclass(frozen=True)
class Manifest:
    """The contents of a manifest: its plan, and the entries of all files."""

    plan: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Owner:
    """The contents of the file that names the plan of a staging folder."""

    plan: int


#: `None` is a file that a power failure has emptied.
Contents = Rows | Entry | Manifest | Owner | None


def digest(contents: Contents) -> int:
    """The hash of a file: equal only for equal bytes."""
    return hash(contents)


@dataclass
class File:
    """A file (an inode): its contents, and whether they are on the disk."""

    contents: Contents
    is_synced: bool = False


@dataclass
class _Lock:
    """The owners of a lock; `is_shared` if there may be several."""

    is_shared: bool
    owners: set[int] = field(default_factory=set)


class Folder:
    """A folder and its staging folder, which all processes share.

    Each method is one system call, and other processes see its effect at once. `on_change` is
    called after each change of a name or of contents.
    """

    def __init__(self, locks_survive_their_owner: bool = False) -> None:
        self.names: dict[str, File] = {}
        #: The number of changes of names outside the staging folder.
        self.n_changes = 0
        self.on_change: Callable[[], None] = lambda: None
        self._durable: dict[str, File] = {}
        #: Changes of names since the last sync: the old and the new name, and the file.
        self._pending: list[tuple[str | None, str | None, File]] = []
        self._locks: dict[str, _Lock] = {}
        self._locks_of: dict[int, set[str]] = {}
        self._locks_survive = locks_survive_their_owner

    # Names and contents.

    def _changed(self, *names: str) -> None:
        self.n_changes += any(not name.startswith(STAGING) for name in names)
        self.on_change()

    def create(self, name: str, contents: Contents) -> File:
        """Creates a file, or truncates one that exists, and writes its contents; nothing is
        synced."""
        file = self.names.get(name)
        if file is None:
            file = self.names[name] = File(contents)
            self._pending.append((None, name, file))
        else:
            file.contents, file.is_synced = contents, False
        self._changed(name)
        return file

    def append(self, name: str, file: File, rows: Range) -> None:
        """Appends rows to an open file of rows, which was created as `name`."""
        assert isinstance(file.contents, Rows)
        file.contents = Rows((*file.contents.ranges, rows), file.contents.attempt)
        file.is_synced = False
        self._changed(name)

    def rename(self, old: str, new: str) -> None:
        """Renames a file; a file with the new name is replaced.

        Raises:
            FileNotFoundError: there is no file with the old name.
        """
        file = self.names.pop(old, None)
        if file is None:
            raise FileNotFoundError(old)
        self.names[new] = file
        self._pending.append((old, new, file))
        self._changed(old, new)

    def remove(self, name: str) -> None:
        """Removes a name, if it exists."""
        file = self.names.pop(name, None)
        if file is not None:
            self._pending.append((name, None, file))
            self._changed(name)

    def sync_names(self) -> None:
        """Syncs the directories: all changes of names become durable."""
        for change in self._pending:
            self._make_durable(*change)
        self._pending.clear()

    def _make_durable(self, old: str | None, new: str | None, file: File) -> None:
        if old is not None and self._durable.get(old) is file:
            del self._durable[old]
        if new is not None:
            self._durable[new] = file

    def contents(self, name: str) -> Contents:
        """The contents of a file; `None` if it does not exist or is empty."""
        file = self.names.get(name)
        return file.contents if file is not None else None

    @property
    def staging_plan(self) -> int | None:
        """The plan of the staging folder; `None` if it does not exist."""
        owner = self.contents(OWNER)
        return owner.plan if isinstance(owner, Owner) else None

    def power_failure(self, random_: random.Random) -> None:
        """Leaves only what is on the disk, and ends all locks."""
        for change in self._pending:
            if random_.random() < 0.5:
                self._make_durable(*change)
        self._pending.clear()
        self._locks.clear()
        self._locks_of.clear()
        self.names = dict(self._durable)
        for file in self.names.values():
            if not file.is_synced:
                file.contents = _truncated(file.contents, random_)
                file.is_synced = True
        self._changed("")

    # Locks.

    def lock(self, name: str, owner: int, shared: bool = False) -> bool:
        """Acquires a lock without waiting; returns false if another process has it."""
        lock = self._locks.get(name)
        if lock is None or not lock.owners - {owner}:
            self._locks[name] = _Lock(shared, {owner})
        elif shared and lock.is_shared:
            lock.owners.add(owner)
        else:
            return False
        self._locks_of.setdefault(owner, set()).add(name)
        return True

    def release(self, owner: int, by_kill: bool = False) -> None:
        """Releases all locks of a process that has ended."""
        if by_kill and self._locks_survive:
            return
        for name in self._locks_of.pop(owner, ()):
            self._locks[name].owners.discard(owner)


def _truncated(contents: Contents, random_: random.Random) -> Contents:
    """Contents of which only a beginning was written to the disk."""
    if not isinstance(contents, Rows) or not contents.ranges:
        return None
    n = random_.randrange(len(contents.ranges))
    first, last = contents.ranges[:n], contents.ranges[n]
    middle = random_.randint(last.start, max(last.start, last.stop - 1))
    return Rows((*first, Range(last.start, middle)), contents.attempt, is_whole=False)

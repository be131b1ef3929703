"""A folder of files in memory, with the effects of a kill and of a power failure.

* A process that is killed leaves all that it has written. Its locks end, as those of flock do.
* A power failure ends all processes. Of a file that was not synced, any number of the last rows is
  missing. Of the changes of names since the last sync of the directory, the last ones are missing,
  as on a file system with a journal (ext4, XFS). Without `keeps_order`, any of them are missing,
  which POSIX allows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benches.parts_simulation.rows import Range


@dataclass(frozen=True)
class Rows:
    """The contents of a file of rows."""

    ranges: tuple[Range, ...]
    #: The process that wrote it. The same rows in another order are other bytes with another hash.
    process: int

    @property
    def n_rows(self) -> int:
        """The number of rows, which represents the size of the file."""
        return sum(rows.n_rows for rows in self.ranges)


@dataclass
class File:
    """A file (an inode): its contents (`None` if it is empty), and whether they are on the disk."""

    contents: Any
    is_synced: bool = False


class Folder:
    """A folder with subfolders, which all processes share.

    Each method is one system call, and other processes see its effect at once. `on_change` is
    called after each change.
    """

    def __init__(self, keeps_order: bool = True) -> None:
        self.names: dict[str, File] = {}
        self.on_change: Callable[[], None] = lambda: None
        self._keeps_order = keeps_order
        self._durable: dict[str, File] = {}
        #: Changes of names since the last sync: new files, or `None` for a name that is removed.
        self._pending: list[dict[str, File | None]] = []
        #: The owners of each lock, with true for a shared one.
        self._locks: dict[str, dict[int, bool]] = {}

    def _change(self, change: dict[str, File | None]) -> None:
        _apply(change, self.names)
        self._pending.append(change)
        self.on_change()

    def create(self, name: str, contents: Any, is_synced: bool = False) -> File:
        """Creates a file, or replaces one that exists."""
        file = File(contents, is_synced)
        self._change({name: file})
        return file

    def rename(self, old: str, new: str) -> None:
        """Renames a file; a file with the new name is replaced.

        Raises:
            FileNotFoundError: there is no file with the old name.
        """
        if old not in self.names:
            raise FileNotFoundError(old)
        self._change({old: None, new: self.names[old]})

    def remove(self, names: Iterable[str]) -> None:
        """Removes names, all or none of them, as the rename of their directory does."""
        self._change(dict.fromkeys(names))

    def sync_names(self) -> None:
        """Syncs the directories: all changes of names become durable."""
        for change in self._pending:
            _apply(change, self._durable)
        self._pending.clear()

    def contents(self, name: str) -> Any:
        """The contents of a file; `None` if it does not exist or is empty."""
        return self.names[name].contents if name in self.names else None

    def power_failure(self, random_: random.Random) -> None:
        """Leaves only what is on the disk, and ends all locks."""
        n_kept = random_.randint(0, len(self._pending))
        for i, change in enumerate(self._pending):
            if i < n_kept if self._keeps_order else random_.random() < 0.5:
                _apply(change, self._durable)
        self._pending.clear()
        self._locks.clear()
        self.names = dict(self._durable)
        for file in self.names.values():
            if not file.is_synced:
                file.contents, file.is_synced = _truncated(file.contents, random_), True
        self.on_change()

    def lock(self, name: str, owner: int, shared: bool = False) -> bool:
        """Acquires or converts a lock without waiting; returns false if another process has it.

        A lock that cannot be converted is lost, as with flock.
        """
        owners = self._locks.setdefault(name, {})
        owners.pop(owner, None)
        if owners and not (shared and all(owners.values())):
            return False
        owners[owner] = shared
        return True

    def release(self, owner: int, name: str | None = None) -> None:
        """Releases a lock of a process, or all after it has ended."""
        for each in list(self._locks) if name is None else [name]:
            owners = self._locks.get(each, {})
            owners.pop(owner, None)
            if not owners:
                self._locks.pop(each, None)


def _apply(change: dict[str, File | None], names: dict[str, File]) -> None:
    for name, file in change.items():
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


def _truncated(contents: Any, random_: random.Random) -> Rows | None:
    """Contents of which only a beginning was written to the disk."""
    if not isinstance(contents, Rows) or not contents.ranges:
        return None
    n = random_.randrange(len(contents.ranges))
    start, stop = contents.ranges[n]
    middle = random_.randint(start, max(start, stop - 1))
    return Rows((*contents.ranges[:n], Range(start, middle)), contents.process)

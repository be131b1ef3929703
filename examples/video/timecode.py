"""The byte offset of a frame in a video file, from the file's own index (ISO/IEC 14496-12, ISO base
media file format).

Only the headers and the index are read, never the frames: some kilobytes, whatever the length of
the file.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, repeat
from typing import BinaryIO

_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts"}
#: An index of this size belongs to some hundred hours of video.
_MOST_INDEX_BYTES = 256 << 20
#: The number of frames of such a video; a larger one is invalid, and is not allocated.
_MOST_FRAMES = 20_000_000


class VideoError(ValueError):
    """The file has no index of its frames, or no frame with the requested timecode."""


@dataclass(frozen=True)
class Index:
    """The index of a video: its frames in presentation order."""

    #: The offset of each frame, in bytes from the start of the file.
    offsets: tuple[int, ...]
    #: The presentation time of each frame, in seconds.
    seconds: tuple[float, ...]
    #: The number of the first frame, as counted by SMPTE timecodes.
    first: int
    #: Frames per second, as counted by timecodes: 30 for 29.97.
    rate: int
    #: True for drop-frame timecodes (SMPTE 12M, 29.97 frames per second).
    drops: bool

    def frame_of(self, timecode: str) -> int:
        """The number of the frame (from 0) with this timecode.

        The format is ``HH:MM:SS:FF``, or ``HH:MM:SS;FF`` for drop-frame timecode.

        Raises:
            VideoError: the timecode is invalid, or the video has no such frame.
        """
        found = re.fullmatch(r"(\d\d):([0-5]\d):([0-5]\d)([:;])(\d\d)", timecode, re.ASCII)
        if found is None:
            raise VideoError(f"{timecode!r} is no timecode: it is written HH:MM:SS:FF")
        hours, minutes, seconds, frames = (int(found[i]) for i in (1, 2, 3, 5))
        if frames >= self.rate:
            raise VideoError(f"{timecode}: a second has {self.rate} frames, 00 to {self.rate - 1:02}")
        number = ((hours * 60 + minutes) * 60 + seconds) * self.rate + frames
        if self.drops:
            dropped = self.rate // 15
            if frames < dropped and seconds == 0 and minutes % 10:
                raise VideoError(f"{timecode}: this number is left out in a timecode that drops frames")
            n_minutes = hours * 60 + minutes
            number -= dropped * (n_minutes - n_minutes // 10)
        if not 0 <= number - self.first < len(self.offsets):
            raise VideoError(
                f"{timecode} is not in the video: it has {self.name(0)} to {self.name(len(self.offsets) - 1)}"
            )
        return number - self.first

    def name(self, frame: int) -> str:
        """The timecode of the frame with this number."""
        number, sign = self.first + frame, ":"
        if self.drops:
            sign, dropped = ";", self.rate // 15
            tens, rest = divmod(number, self.rate * 600 - 9 * dropped)
            number += 9 * dropped * tens + dropped * max(0, (rest - dropped) // (self.rate * 60 - dropped))
        seconds, frames = divmod(number, self.rate)
        minutes, seconds = divmod(seconds, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{sign}{frames:02}"


def timecode_to_index(video: str | os.PathLike[str], timecode: str) -> int:
    """The byte offset of the frame with this SMPTE timecode, from the index of the file.

    Raises:
        VideoError: the file has no such index, or no such frame.
        OSError: the file cannot be read.
    """
    index = index_of(video)
    return index.offsets[index.frame_of(timecode)]


def index_of(video: str | os.PathLike[str]) -> Index:
    """The index of a video file, cached while the file does not change.

    Raises:
        VideoError: the file has no index.
        OSError: the file cannot be read.
    """
    found = os.stat(video)
    return _read(os.fspath(video), (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=16)
def _read(path: str, _version: tuple[int, int, int]) -> Index:
    with open(path, "rb") as file:
        try:
            return _index(file)
        except VideoError:
            raise
        except (struct.error, LookupError, StopIteration, ArithmeticError, ValueError) as e:
            raise VideoError(f"{path} has no index that can be read: {e!r}") from e


def _index(file: BinaryIO) -> Index:
    tracks: dict[bytes, dict[bytes, bytes]] = {}
    for track in _tracks(_moov(file)):
        tracks.setdefault(track[b"hdlr"][8:12], track)
    video = tracks[b"vide"]
    counted, first = tracks.get(b"tmcd"), 0
    times, scale = _times(video)
    order = sorted(range(len(times)), key=times.__getitem__)
    offsets = _offsets(video)
    if len(times) != len(offsets):
        raise VideoError(f"the index has {len(times)} times and {len(offsets)} positions of frames")
    if max(offsets) >= os.fstat(file.fileno()).st_size:
        raise VideoError("the file is truncated: its index has frames past its end")
    n_seconds = (times[order[-1]] - times[order[0]]) / scale / max(1, len(order) - 1)
    rate, drops = round(1 / n_seconds) if n_seconds else 1, False
    if counted is not None:
        flags, _, _, rate = struct.unpack_from(">IIIB", counted[b"stsd"], 8 + 16 + 4)
        drops = bool(flags & 1)
        file.seek(_offsets(counted)[0])
        (first,) = struct.unpack(">I", file.read(4))
    if not 1 <= rate <= 99:
        raise VideoError(f"{rate} frames a second, of which timecodes have two digits")
    if first + len(order) > 100 * 3600 * rate:
        raise VideoError(f"the first frame is number {first}, of which timecodes have two digits of hours")
    start = times[order[0]]
    seconds = tuple((times[i] - start) / scale for i in order)
    return Index(tuple(offsets[i] for i in order), seconds, first, rate, drops)


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The boxes in the content of a box, each as its type and content."""
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            head = 16
        end = len(data) if size == 0 else at + size
        if not at + head <= end <= len(data):
            raise VideoError(f"the box at byte {at} of another one is {size} bytes long")
        yield kind, data[at + head : end]
        at = end


def _moov(file: BinaryIO) -> bytes:
    """The content of the `moov` box, which describes the tracks; the media data is skipped."""
    size_of_file = os.fstat(file.fileno()).st_size
    at = 0
    while at < size_of_file:
        file.seek(at)
        head = file.read(16)
        size, kind = struct.unpack_from(">I4s", head)
        n_head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", head, 8)
            n_head = 16
        elif size == 0:
            size = size_of_file - at
        if size < n_head or at + size > size_of_file:
            raise VideoError(f"the box at byte {at} is {size} bytes long, the file {size_of_file}")
        if kind == b"moov":
            if size > _MOST_INDEX_BYTES:
                raise VideoError(f"the index has {size} bytes")
            file.seek(at + n_head)
            return file.read(size - n_head)
        at += size
    raise VideoError("this is no MP4 file with an index (`moov`)")


def _tracks(moov: bytes) -> Iterator[dict[bytes, bytes]]:
    for kind, track in _boxes(moov):
        if kind == b"trak":
            yield dict(_leaves(track))


def _leaves(data: bytes, depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
    for kind, content in _boxes(data):
        if kind in _CONTAINERS and depth < len(_CONTAINERS):
            yield from _leaves(content, depth + 1)
        else:
            yield kind, content


def _table(box: bytes, form: str) -> list[tuple[int, ...]]:
    """The entries of a box that contains a table; ``form`` is the `struct` format of an entry."""
    (n,) = struct.unpack_from(">I", box, 4)
    size = struct.calcsize(form)
    if 8 + n * size > len(box):
        raise VideoError(f"a table of {n} entries in {len(box)} bytes")
    return list(struct.iter_unpack(form, box[8 : 8 + n * size]))


def _times(track: dict[bytes, bytes]) -> tuple[list[int], int]:
    """The presentation time of each sample of a track, and the number of time units per second."""
    header = track[b"mdhd"]
    (scale,) = struct.unpack_from(">I", header, 20 if header[0] else 12)
    steps = _spread(track[b"stts"], ">II")
    decoded = list(accumulate(steps, initial=0))[:-1]
    if b"ctts" not in track:
        return decoded, scale
    shifts = _spread(track[b"ctts"], ">Ii")
    return [time + shift for time, shift in zip(decoded, shifts, strict=True)], scale


def _spread(box: bytes, form: str) -> list[int]:
    """The value for each sample, from a run-length encoded table."""
    table = _table(box, form)
    _few(sum(n for n, _ in table))
    return list(chain.from_iterable(repeat(value, n) for n, value in table))


def _few(n_frames: int) -> None:
    if not 0 < n_frames <= _MOST_FRAMES:
        raise VideoError(f"the index has {n_frames} frames")


def _offsets(track: dict[bytes, bytes]) -> list[int]:
    """The byte offset of each sample of a track, in decoding order."""
    sizes_box = track[b"stsz"]
    (size, n_samples) = struct.unpack_from(">II", sizes_box, 4)
    _few(n_samples)
    sizes = iter(repeat(size, n_samples) if size else [n for (n,) in _table(sizes_box[4:], ">I")])
    wide = track.get(b"co64")
    chunks = [at for (at,) in (_table(wide, ">Q") if wide else _table(track[b"stco"], ">I"))]
    runs = _table(track[b"stsc"], ">III")
    ends = [first for first, _, _ in runs[1:]] + [len(chunks) + 1]
    _few(sum(n * max(0, end - max(1, first)) for (first, n, _), end in zip(runs, ends, strict=True)))
    found: list[int] = []
    for (first, n_in_chunk, _), end in zip(runs, ends, strict=True):
        for at in chunks[first - 1 : end - 1]:
            for _ in range(n_in_chunk):
                found.append(at)
                at += next(sizes)
    if len(found) != n_samples:
        raise VideoError(f"the index has the positions of {len(found)} of {n_samples} samples")
    return found

"""The video example: a browser plays and seeks by range requests, frames are at the offsets that
ffprobe reports, and parts are sent with sendfile."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser

TIMECODE = "01:09:14:28"


pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="there is no ffmpeg, which makes the clip")


@pytest.fixture
def clip(video: Path) -> Path:
    """The path of the example's video file."""
    importlib.import_module("clip").make()
    return video / "page" / "clip.mp4"


def frames(path: Path) -> list[tuple[float, int]]:
    """The time in seconds and the file offset of each frame, determined by ffprobe."""
    command = ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pos,pts_time", "-of", "json"]
    report = json.loads(subprocess.run([*command, path], stdout=subprocess.PIPE, check=True).stdout)
    return sorted((float(packet["pts_time"]), int(packet["pos"])) for packet in report["packets"])


def test_every_frame_is_where_ffprobe_finds_it(clip: Path) -> None:
    timecode = importlib.import_module("timecode")
    index = timecode.index_of(clip)
    found = frames(clip)
    assert list(index.offsets) == [at for _, at in found] and len(found) == 75 * 30
    pairs = zip(found, index.seconds, strict=True)
    assert all(abs(at - found[0][0] - seconds) < 1e-5 for (at, _), seconds in pairs)
    assert index.frame_of(TIMECODE) == 14 * 30 + 28
    assert timecode.timecode_to_index(clip, TIMECODE) == found[14 * 30 + 28][1]
    assert [index.frame_of(index.name(frame)) for frame in range(len(found))] == list(range(len(found)))


def test_drop_frame_timecodes(video: Path, tmp_path: Path) -> None:
    timecode = importlib.import_module("timecode")
    clip = tmp_path / "dropping.mp4"
    picture = "testsrc2=size=64x64:rate=30000/1001:duration=130"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", picture, "-timecode", "00:58:59;00", "-c:v", "mpeg4"]
    subprocess.run([*command, clip], check=True)
    index = timecode.index_of(clip)
    # The first two numbers of a minute are dropped, except in every tenth minute.
    assert (index.rate, index.drops, index.name(0), index.name(30)) == (30, True, "00:58:59;00", "00:59:00;02")
    assert index.name(1828) == "01:00:00;00" and index.frame_of("01:00:00;00") == 1828
    assert [index.frame_of(index.name(frame)) for frame in range(3890)] == list(range(3890))
    with pytest.raises(timecode.VideoError, match="left out"):
        index.frame_of("00:59:00;01")


@pytest.mark.parametrize(
    "wrong", ["", "1:2:3:4", "01:09:14:30", "01:60:00:00", "00:00:00:00", "01:10:15:00", "٠١:٠٩:١٤:٢٨"]
)
def test_timecodes_that_are_invalid_or_out_of_range(clip: Path, wrong: str) -> None:
    timecode = importlib.import_module("timecode")
    with pytest.raises(timecode.VideoError):
        timecode.timecode_to_index(clip, wrong)


def test_files_that_are_not_a_video(video: Path, clip: Path, tmp_path: Path) -> None:
    timecode = importlib.import_module("timecode")
    whole = clip.read_bytes()[: 1 << 16]
    at = whole.index(b"stsz") + 4
    for n, wrong in enumerate([b"", b"GIF89a", whole, whole[:at] + b"\xff" * 12 + whole[at + 12 :], b"\0\0\0\x08moov"]):
        path = tmp_path / str(n)
        path.write_bytes(wrong)
        with pytest.raises(timecode.VideoError):
            timecode.index_of(path)


def boxes(choose: random.Random, index: bytes) -> bytes:
    """The boxes (sections) before a clip's frames, truncated or with some bytes or numbers
    changed."""
    data = bytearray(index)
    for _ in range(choose.choice((1, 1, 2, 5))):
        at = choose.randrange(len(data) - 8)
        match choose.randrange(4):
            case 0:
                data[at] = choose.randrange(256)
            case 1:
                data[at : at + 4] = choose.choice((0, 1, 8, 2**31, 2**32 - 1)).to_bytes(4, "big")
            case 2:
                # A number after the name of a box: its size, or the size of its table.
                kind = choose.choice([b"stts", b"ctts", b"stsz", b"stsc", b"stco", b"mdhd", b"tmcd", b"moov", b"trak"])
                at = data.find(kind) + 4 * choose.choice((-1, 1, 2, 3, 4))
                if 0 <= at <= len(data) - 4:
                    data[at : at + 4] = choose.choice((0, 1, 2**16, 2**31 - 1, 2**32 - 1)).to_bytes(4, "big")
            case _:
                del data[at : at + choose.choice((1, 4, 8, len(data)))]
        if len(data) < 16:
            break
    return bytes(data)


def test_any_bytes_are_a_video_or_an_error(clip: Path, video: Path, tmp_path: Path) -> None:
    timecode = importlib.import_module("timecode")
    index = clip.read_bytes()
    index = index[: index.index(b"mdat") - 4]
    path, choose, n_read = tmp_path / "any", random.Random(7), 0
    for k in range(600):
        path.write_bytes(boxes(choose, index))
        os.truncate(path, clip.stat().st_size)
        os.utime(path, ns=(k, k))
        try:
            found = timecode.index_of(path)
        except timecode.VideoError:
            continue
        n_read += 1
        assert found.frame_of(found.name(0)) == 0 and len(found.offsets) == len(found.seconds)
    assert 0 < n_read < 600


def test_a_chunk_is_sent_from_the_file_to_the_socket(clip: Path) -> None:
    chunks, timecode = importlib.import_module("chunks"), importlib.import_module("timecode")
    offset = timecode.timecode_to_index(clip, TIMECODE)
    with clip.open("rb") as file:
        chunk = chunks.request_chunk(file, offset, 20 << 20)
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def send() -> None:
                chunk.send(ours)
                ours.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            with theirs.makefile("rb") as reader:
                got = reader.read()
            sender.join()
        assert got == os.pread(file.fileno(), 20 << 20, offset) and len(got) == len(chunk)
        assert len(chunks.request_chunk(file, clip.stat().st_size - 5, 100)) == 5
        for wrong in ((-1, 5), (0, -1), (clip.stat().st_size + 1, 1)):
            with pytest.raises(ValueError, match="the video has"):
                chunks.request_chunk(file, *wrong)


def serving(video: Path) -> tuple[subprocess.Popen[str], str]:
    """Starts the example as its README describes; returns the process and its URL."""
    command = [sys.executable, "-m", "onecopy", "run", "app:app", "--bind", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=video, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    return process, said[said.index("http://") :].split()[0]


def test_the_page_plays_and_seeks_in_a_browser(video: Path, clip: Path, tmp_path: Path) -> None:
    process, url = serving(video)
    try:
        with Browser(tmp_path) as browser:
            browser.go(url)
            plays = browser.run(
                """const video = document.querySelector("video");
                await video.play();
                while (video.currentTime < 0.5) await new Promise(done =>
                    video.addEventListener("timeupdate", done, {once: true}));
                video.pause();
                return [video.videoWidth, video.duration, video.currentTime];"""
            )
            assert plays[:2] == [640, 75] and plays[2] >= 0.5
            for timecode, frame in ((TIMECODE, 448), ("01:10:10:07", 2107)):
                shown = browser.run(
                    """const video = document.querySelector("video");
                    document.querySelector("input").value = arguments[0];
                    const seeked = new Promise(done => video.addEventListener("seeked", done, {once: true}));
                    const shown = new Promise(done =>
                        video.requestVideoFrameCallback((_, frame) => done(frame.mediaTime)));
                    document.querySelector("button").click();
                    await seeked;
                    return await shown;""",
                    timecode,
                )
                assert round(shown * 30) == frame
            refused = browser.run(
                """document.querySelector("input").value = "01:20:00:00";
                const output = document.querySelector("output");
                const changed = new Promise(done => new MutationObserver(done).observe(output, {childList: true}));
                document.querySelector("button").click();
                await changed;
                return output.textContent;"""
            )
            assert "not in the video" in refused
            answers: list[dict[str, Any]] = [
                received["response"]
                for received in browser.events("Network.responseReceived")
                if received["response"]["url"].endswith("clip.mp4")
            ]
        assert len(answers) >= 2 and {answer["status"] for answer in answers} == {206}
        starts = {answer["headers"]["Content-Range"].split("-")[0] for answer in answers}
        assert "bytes 0" in starts and len(starts) >= 2, starts
    finally:
        process.terminate()
        process.communicate()


def test_the_parts_that_the_application_sends(video: Path, clip: Path) -> None:
    process, url = serving(video)
    try:
        reply = json.load(urllib.request.urlopen(f"{url}frame?timecode={TIMECODE}", timeout=60))
        assert reply["frame"] == 448 and reply["byte_offset"] == frames(clip)[448][1]
        part = urllib.request.urlopen(f"{url}chunk?timecode={TIMECODE}", timeout=60).read()
        with clip.open("rb") as file:
            assert part == os.pread(file.fileno(), 20 << 20, reply["byte_offset"])
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}frame?timecode=nine", timeout=60)
        with refused.value as answer:
            assert answer.code == 404 and "HH:MM:SS:FF" in json.load(answer)["error"]
    finally:
        process.terminate()
        process.communicate()

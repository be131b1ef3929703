"""A page with a video, whose seeking asks for ranges, and parts of the video by their timecodes.

onecopy run app:app
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import onecopy
from chunks import request_chunk
from timecode import VideoError, index_of

FOLDER = Path(__file__).parent / "page"
VIDEO = FOLDER / "clip.mp4"
CHUNK_BYTES = 20 << 20

# Everything that is a file, the video with its ranges among them.
_files = onecopy.files(FOLDER)


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The application (PEP 3333)."""
    path = environ["PATH_INFO"]
    if path not in ("/frame", "/chunk"):
        return _files(environ, start_response)
    timecode = parse_qs(environ["QUERY_STRING"]).get("timecode", [""])[0]
    try:
        index = index_of(VIDEO)
        frame = index.frame_of(timecode)
    except VideoError as e:
        return _json(start_response, "404 Not Found", {"error": str(e)})
    if path == "/frame":
        told = {"frame": frame, "seconds": index.seconds[frame], "byte_offset": index.offsets[frame]}
        return _json(start_response, "200 OK", told)
    with VIDEO.open("rb") as video:
        chunk = request_chunk(video, index.offsets[frame], CHUNK_BYTES)
        fields = [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(chunk)))]
        # A part of a file of its own, not one to be parted again.
        start_response("200 OK", [*fields, ("Accept-Ranges", "none")])
        return chunk.body(environ)


def _json(start_response: Callable[..., Any], status: str, told: object) -> Iterable[bytes]:
    body = json.dumps(told).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]

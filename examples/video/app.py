"""A WSGI application with a page whose video seeks by range requests, and parts of the video by
timecode.

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

# All files, including the video with its ranges.
_files = onecopy.files(FOLDER)


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The WSGI application (PEP 3333)."""
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
        found = {"frame": frame, "seconds": index.seconds[frame], "byte_offset": index.offsets[frame]}
        return _json(start_response, "200 OK", found)
    with VIDEO.open("rb") as video:
        chunk = request_chunk(video, index.offsets[frame], CHUNK_BYTES)
        fields = [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(chunk)))]
        # A part of a file, to which ranges do not apply.
        start_response("200 OK", [*fields, ("Accept-Ranges", "none")])
        return chunk.body(environ)


def _json(start_response: Callable[..., Any], status: str, document: object) -> Iterable[bytes]:
    body = json.dumps(document).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]

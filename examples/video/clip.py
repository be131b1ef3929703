"""Creates the clip of the example with ffmpeg: 75 seconds of a test picture at 30 frames per
second, starting at timecode 01:09:00:00.

python clip.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

CLIP = Path(__file__).parent / "page" / "clip.mp4"


def make(clip: Path = CLIP, seconds: int = 75) -> None:
    """Creates the clip unless it exists.

    Raises:
        RuntimeError: ffmpeg is not installed, or failed.
    """
    if clip.exists():
        return
    if shutil.which("ffmpeg") is None:
        raise RuntimeError("there is no ffmpeg\ninstall it: sudo apt-get install ffmpeg")
    unfinished = clip.with_suffix(".part.mp4")
    picture = f"testsrc2=size=640x360:rate=30:duration={seconds}"
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", picture, "-timecode", "01:09:00:00"]
    # One key frame per second, dependent frames in between, and the index at the start.
    command += ["-c:v", "libx264", "-preset", "veryfast", "-bf", "2", "-g", "30", "-pix_fmt", "yuv420p"]
    command += ["-b:v", "3M", "-minrate", "3M", "-maxrate", "3M", "-bufsize", "3M", "-x264-params", "nal-hrd=cbr"]
    done = subprocess.run(
        [*command, "-movflags", "+faststart", unfinished], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"ffmpeg failed:\n{done.stderr}")
    unfinished.rename(clip)


if __name__ == "__main__":
    make()
    print(f"{CLIP}: {CLIP.stat().st_size:,} bytes", file=sys.stderr)

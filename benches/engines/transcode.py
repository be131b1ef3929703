"""`onecopy transcode` compared with glibc's iconv: whole processes that convert files of 1 GB in
the page cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import rust  # noqa: E402

WESTERN = (
    "The quick brown fox jumps over the lazy dog; 1234567890 times, in a line of plain text.\n"
    "Zürich, São Paulo und Århus: größere Straßen, naïve Gäste, déjà vu à l'hôtel.\n"
)
MIXED = WESTERN + (
    "Санкт-Петербург — город на Неве; население города растёт из года в год.\n"
    "東京都は日本の首都であり、人口が最も多い都市です。北京市、香港特別行政區。\n"
    "emoji 😀 and 👩‍👩‍👧 families\n"
)
#: Name, text, input encoding, output encoding, target for the wall time ratio.
ROWS = (
    ("UTF-16 to UTF-8, western", WESTERN, "utf-16-le", "utf-8", 5),
    ("UTF-16 to UTF-8, scripts mixed", MIXED, "utf-16-le", "utf-8", 5),
    ("Latin-1 to UTF-8", WESTERN, "latin-1", "utf-8", 5),
    ("UTF-8 to UTF-16", MIXED, "utf-8", "utf-16-le", None),
    ("UTF-8 to UTF-8, validated", MIXED, "utf-8", "utf-8", None),
    ("windows-1252 to UTF-8", WESTERN, "windows-1252", "utf-8", None),
)
MOST_RESIDENT_MB = 32
ICONV = {"latin-1": "latin1", "utf-16-le": "utf-16le"}


def command() -> str:
    """The path of the command, built from this checkout for release; it needs no Python. The
    environment variable ONECOPY_COMMAND names a command that was already built."""
    if built := os.environ.get("ONECOPY_COMMAND"):
        return built
    environment = rust.environment()
    cargo = ["cargo", "build", "-q", "--release", "--locked", "-p", "onecopy-cli"]
    subprocess.run(cargo, cwd=ROOT, env=environment, check=True)
    metadata = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    figures = subprocess.run(metadata, cwd=ROOT, env=environment, check=True, capture_output=True).stdout
    return str(Path(json.loads(figures)["target_directory"]) / "release" / "onecopy")


def fill(path: Path, unit: bytes, size: int) -> None:
    """Writes a file of about `size` bytes that consists of copies of `unit`."""
    blob = unit * (1 + 4_000_000 // len(unit)) if size > 4_000_000 else unit
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(blob)


def run(args: list[str], out: str) -> tuple[float, float]:
    """Runs a process; returns its wall-clock and processor time in seconds."""
    with open(out, "wb") as file:
        begun = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", "0", *args], stdout=file)
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{args[0]} ended with {process.returncode}")
    return taken, used.ru_utime + used.ru_stime


def resident(args: list[str]) -> float:
    """Runs a process; returns the peak of its resident memory in MB.

    The peak is sampled, since the figure of `wait4` is at least the memory of this process.
    """
    most = 0
    with subprocess.Popen(args, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
                # Before it executes the program it is a copy of this process.
                if status.startswith("Name:\tonecopy"):
                    most = max([most, *(int(line.split()[1]) for line in status.splitlines() if line[:6] == "VmHWM:")])
    return most * 1024 / 1e6


def digest(path: str) -> str:
    """The digest of a file, to compare outputs."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if sys.version_info >= (3, 11) else file.name


def main(once: bool) -> None:
    """Prints the table."""
    iconv = shutil.which("iconv")
    if iconv is None:
        print("there is no iconv here to measure against")
        return
    ours = command()
    size, rounds = (100_000, 1) if once else (1_000_000_000, 5)
    print(f"{'to /dev/null, pinned to one core':34} {'onecopy':>10} {'iconv':>10}  wall   cpu  target   resident")
    with tempfile.TemporaryDirectory(dir=ROOT / "benches") as folder:
        source = Path(folder) / "text"
        for name, text, encoding, target, at_least in ROWS:
            fill(source, text.encode(encoding), size)
            a = [ours, "transcode", "-f", encoding, "-t", target, str(source)]
            b = [iconv, "-f", ICONV.get(encoding, encoding), "-t", ICONV.get(target, target), str(source)]
            if once:
                made = []
                for args in (a, b):
                    run(args, f"{folder}/out")
                    made.append(digest(f"{folder}/out"))
                print(f"{name:34} {'answers agree' if made[0] == made[1] else 'ANSWERS DIFFER'}")
                continue
            pairs = [(run(a, os.devnull), run(b, os.devnull)) for _ in range(rounds + 1)][1:]
            wall, cpu = (statistics.median(b[k] / a[k] for a, b in pairs) for k in (0, 1))
            mine, theirs = (statistics.median(pair[k][0] for pair in pairs) for k in (0, 1))
            memory = resident(a)
            short = (at_least is not None and wall < at_least) or memory > MOST_RESIDENT_MB
            print(
                f"{name:34} {mine:>8.3f} s {theirs:>8.3f} s {wall:>5.1f} {cpu:>5.1f}   {at_least or '-':>5}"
                f"   {memory:>5.1f} MB{'  SHORT' if short else ''}",
                flush=True,
            )

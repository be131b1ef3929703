"""`make bench NAME=rows`: builds a release of onecopy, installs its peers in a separate environment
(benches/.venv), and runs a benchmark there.

python3 tools/bench.py NAME [--save] [ARGUMENTS of benches/run.py …]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import dev
import rust
from house import CACHE, ROOT, give_up, main, say
from tests.support import packages

#: Debian packages for peers that are built from source (mysqlclient, bjoern), and their purposes.
_FOR_PEERS = {
    "libmariadb-dev": "the C library that it wraps",
    "pkg-config": "finds it",
    "libev-dev": "bjoern's event loop",
}
#: The load generator of `serve`, and one of its servers.
_FOR_SERVE = {"wrk": "sends the requests", "nginx-light": "a server to compare with"}
_RUN = ROOT / "benches" / "run.py"
_DEFINITIONS = ROOT / "benches" / "definitions"


def _needs_no_extension(name: str) -> bool:
    """Returns true if Maven builds the benchmark, or if it is a simulation.

    Such a benchmark needs neither the Python extension nor its peers.
    """
    path = _DEFINITIONS / f"{name}.toml"
    return (
        path.is_file()
        and re.search(r'^kind = "(java|simulation)"$', path.read_text(encoding="utf-8"), re.M) is not None
    )


def _main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        names = ", ".join(sorted(path.stem for path in _DEFINITIONS.glob("*.toml")))
        give_up(f"which benchmark? There are: {names}\nmake bench NAME={names.split(',')[0]}", 2)
    if _needs_no_extension(arguments[0]):
        directory = CACHE / "plots"
        dev.venv(directory, sys.executable, ROOT / "benches" / "plots.txt")
        command = [str(directory / "bin" / "python"), str(_RUN), *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    unbuilt = packages.missing(_FOR_PEERS)
    if unbuilt and not packages.install(unbuilt):
        give_up(f"a peer is built here, for which packages are missing:\n    {packages.install_line(unbuilt)}")
    absent = packages.missing({**packages.PACKAGES, **(_FOR_SERVE if arguments[0] == "serve" else {})})
    if absent and not (os.geteuid() == 0 and packages.install(absent)):
        say(f"without these packages some peers cannot be measured:\n    {packages.install_line(absent)}")
    python = dev.build(ROOT / "benches" / ".venv", ROOT / "benches" / "peers.txt")
    environment = rust.environment()
    try:
        return subprocess.run([str(python), str(_RUN), *arguments], cwd=ROOT, env=environment, check=False).returncode
    finally:
        if not os.environ.get("KEEP_SERVERS"):
            subprocess.run([str(python), "-m", "tests.support.servers", "stop"], cwd=ROOT, check=False)


if __name__ == "__main__":
    main(_main)

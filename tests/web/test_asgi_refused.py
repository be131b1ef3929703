"""`onecopy run` refuses a FastAPI application at the start, since it is ASGI."""

from __future__ import annotations

from pathlib import Path

from tests.support.supervised import Folder, running


def test_a_fastapi_application_is_refused_at_the_start(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (folder.path / "application.py").write_text("import fastapi\napp = fastapi.FastAPI()\n")
    with running(folder) as supervised:
        code, said = supervised.ends()
    assert code == 2 and "`application:app` is an ASGI application" in said

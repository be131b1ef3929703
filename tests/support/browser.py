"""Headless Chromium, controlled by the WebDriver protocol (W3C WebDriver 2), for tests in a
browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

#: The time limit of the browser's responses, and of scripts that wait.
PATIENCE_S = 120


class Browser:
    """A Chromium process whose profile is in a new directory below ``folder``."""

    def __init__(self, folder: Path) -> None:
        driver = shutil.which("chromedriver")
        if driver is None:
            pytest.skip("there is no chromedriver; Debian's package is chromium-driver")
        self._log = (folder / "driver.log").open("w+")
        self._driver = subprocess.Popen(
            [driver, "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        try:
            self._session = self._begin(folder)
        except BaseException:
            self.close()
            raise

    def _begin(self, folder: Path) -> str:
        assert self._driver.stdout is not None
        port = next(filter(None, (re.search(r"successfully on port (\d+)", line) for line in self._driver.stdout)))[1]
        self._url = f"http://127.0.0.1:{port}/session"
        # Tests may run as root, where Chromium's sandbox does not start; only our own pages are
        # opened.
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"]
        words += [f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--disable-background-networking"]
        wanted = {"goog:chromeOptions": {"args": words}, "goog:loggingPrefs": {"performance": "ALL"}}
        begun = self._ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/{begun['sessionId']}"
        self._ask("POST", "/timeouts", {"script": PATIENCE_S * 1000})
        return str(begun["sessionId"])

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and the WebDriver process."""
        try:
            if hasattr(self, "_session"):
                self._ask("DELETE", "", None)
        finally:
            self._driver.terminate()
            self._driver.communicate()
            self._log.close()

    def _ask(self, method: str, path: str, said: Any) -> Any:
        body = None if said is None else json.dumps(said).encode()
        wanted = urllib.request.Request(self._url + path, data=body, method=method)
        with urllib.request.urlopen(wanted, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def go(self, url: str) -> None:
        """Opens the page at ``url``."""
        self._ask("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Executes ``script`` as the body of an asynchronous function, with ``arguments``; returns
        its result."""
        waits = f"const done = arguments[arguments.length - 1]; (async function() {{ {script} }})"
        waits += ".apply(null, arguments).then(value => done({value}), error => done({error: String(error)}))"
        given = self._ask("POST", "/execute/async", {"script": waits, "args": list(arguments)})
        assert "error" not in given, given["error"]
        return given.get("value")

    def events(self, method: str) -> list[dict[str, Any]]:
        """The network events since the last call; ``method`` is their name in the DevTools
        protocol."""
        entries = self._ask("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [message["params"] for message in messages if message["method"] == method]

"""The tour of replicas does what it says: every command in it is run, in order, in one shell, and its output compared."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from harness import REPOSITORY, LogsteadServer, free_port
from test_readme import assert_output, steps

pytestmark = pytest.mark.logstead_only

TOUR = REPOSITORY / "docs/operations/replicas-tour.md"
PORTS = ("5433", "5434", "5435")
END = "@@ end of command @@"
COMMAND_TIMEOUT_S = 180


class Shell:
    """One bash, with `logstead` on its path, in an empty directory."""

    def __init__(self, directory: Path):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LOGSTEAD_"))}
        environment["PATH"] = f"{Path(LogsteadServer.binary()).resolve().parent}:{environment['PATH']}"
        self.process = subprocess.Popen(
            ["bash"], cwd=directory, env={**environment, "LC_ALL": "C.UTF-8"}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command: str) -> str:
        printed = ""
        # What waits for something that does not come is ended, so that the test says where it stood.
        watchdog = threading.Timer(COMMAND_TIMEOUT_S, self.end)
        watchdog.start()
        try:
            self.process.stdin.write(f"{command}\necho '{END}'\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.rstrip("\n") == END:
                    return printed
                # An interactive shell tells of a program that was killed at another time.
                if not re.match(r"bash: line \d+: +\d+ Killed ", line):
                    printed += line
        finally:
            watchdog.cancel()
        raise AssertionError(f"the shell has ended, or had not finished within {COMMAND_TIMEOUT_S} s, at {command}\n{printed}")

    def end(self) -> None:
        """Ends it, and whatever it has started."""
        # The group is gone if the shell has been ended before.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


def take_tour(tour: Path, known_ports: tuple[str, ...], directory: Path) -> int:
    """Runs the commands of a tour, with other ports; gives their number."""
    found = re.findall(r"^```console\n(.*?)^```$", tour.read_text(), re.MULTILINE | re.DOTALL)
    commands = [step for block in found for step in steps("console", block.splitlines())]
    ports = dict(zip(known_ports, (str(free_port()) for _ in known_ports), strict=True))

    def placed(text: str) -> str:
        return re.sub("|".join(known_ports), lambda match: ports[match.group()], text)

    shell = Shell(directory)
    try:
        for command, expected in commands:
            assert_output(command, [placed(line) for line in expected], shell.run(placed(command)))
    finally:
        shell.end()
    return len(commands)


def test_tour(tmp_path):
    assert take_tour(TOUR, PORTS, tmp_path) > 25, "the tour has become short: are its blocks still found?"

"""The README's tour does what it says: every command in it is run, in order, and its output compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from harness import REPOSITORY, TIMEOUT_S, Server

PROMPT = re.compile(r"^postgres[=(-][*!]?# ?")
FIRST_PROMPT = re.compile(r"^postgres=[*!]?# ")


def blocks() -> list[tuple[str, list[str]]]:
    """The executable blocks (console and psql) with their lines."""
    found, kind, lines = [], None, []
    for line in (REPOSITORY / "README.md").read_text().splitlines():
        if line.startswith("```"):
            if kind in ("console", "psql"):
                found.append((kind, lines))
            kind, lines = (line[3:] or None) if kind is None else None, []
        elif kind:
            lines.append(line)
    return found


def steps(kind: str, lines: list[str]) -> list[tuple[str, list[str]]]:
    """Commands or statements with the output that belongs to each."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if kind == "console" and line.startswith("$ "):
            found.append((line[2:], []))
        elif kind == "psql" and FIRST_PROMPT.match(line):
            found.append((FIRST_PROMPT.sub("", line), []))
        elif kind == "psql" and PROMPT.match(line):
            found[-1] = (found[-1][0] + "\n" + PROMPT.sub("", line), found[-1][1])
        else:
            found[-1][1].append(line)
    return found


def matches(expected: list[str], found: list[str]) -> bool:
    """Whether output is as written; a line `...` stands for any lines, `...` in a line for any text."""
    if not expected:
        return not found
    if expected[0] == "...":
        return any(matches(expected[1:], found[count:]) for count in range(len(found) + 1))
    if not found:
        return False
    line = ".*".join(map(re.escape, expected[0].rstrip().split("...")))
    return re.fullmatch(line, found[0].rstrip()) is not None and matches(expected[1:], found[1:])


def assert_output(command: str, expected: list[str], printed: str) -> None:
    """Fails with both texts; blank lines at the end do not count."""
    expected, found = "\n".join(expected).rstrip().splitlines(), printed.rstrip().splitlines()
    assert matches(expected, found), f"{command}\n--- the README says\n" + "\n".join(expected) + f"\n--- it printed\n{printed}"


class Bucket:
    """`logstead dev-bucket`, once the tour has started it, on a port of the system's choice."""

    def __init__(self):
        self.process: subprocess.Popen | None = None
        self.environment: dict[str, str] = {}

    def start(self, program: str) -> str:
        """Starts it; what it printed."""
        command = [program, "dev-bucket", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        printed = ""
        for line in self.process.stdout:
            printed += line
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").strip().partition("=")
                self.environment[name] = value
            if line.startswith("# logstead serve"):
                return printed
        raise AssertionError(f"dev-bucket ended\n{printed}")

    def stop(self) -> None:
        """SIGKILL: it has nothing to keep."""
        if self.process:
            self.process.kill()
            self.process.wait(TIMEOUT_S)


def run_command(server: Server, bucket: Bucket, command: str) -> str:
    """Runs a shell command of the tour; starting and stopping the server is done by the test itself."""
    if command == "./run" or command.startswith("./run --home "):
        if server.name == "logstead":
            server.start(command.split()[1:], env=bucket.environment)
        else:
            server.start()
        return server.output_text()
    if command in ("kill -9 $(pgrep -x logstead)", "kill -9 $(pgrep -f 'logstead serve')"):
        server.kill()
        return ""
    if command == "logstead dev-bucket":
        return bucket.start(server.binary())
    if command in ("kill -TERM $(pgrep -x logstead)", "kill -TERM $(pgrep -f 'logstead serve')"):
        assert server.stop() == 0
        return ""
    command = command.replace("5433", str(server.port)).replace("logstead-data", server.home)
    environment = {**server.environment(), **bucket.environment}
    if server.name == "logstead":
        environment["PATH"] = f"{Path(server.binary()).resolve().parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], env=environment, cwd=REPOSITORY, text=True, timeout=TIMEOUT_S * 3,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    # `head` may end before its writer, which then dies of SIGPIPE.
    assert done.returncode in (0, 141), f"{command} ended with {done.returncode}\n{done.stdout}"
    return done.stdout


def run_session(server: Server, statements: list[str]) -> list[str]:
    """Runs statements in one psql session; what each of them printed."""
    mark = "@@ end of statement @@"
    script = "".join(f"{statement}\n\\echo {mark}\n" for statement in statements)
    printed = server.run("sh", "-c", "exec psql -X 2>&1", stdin=script, check=False).stdout
    return printed.split(mark + "\n")[: len(statements)]


@pytest.fixture
def bucket() -> Bucket:
    """A development bucket, not yet started."""
    bucket = Bucket()
    yield bucket
    bucket.stop()


def test_tour(private_server, bucket):
    server = private_server
    count = 0
    for kind, lines in blocks():
        parts = steps(kind, lines)
        if kind == "psql":
            for (statement, expected), printed in zip(parts, run_session(server, [part[0] for part in parts]), strict=True):
                assert_output(statement, expected, printed)
        else:
            for command, expected in parts:
                if command.startswith("logstead ") and server.name != "logstead":
                    continue
                assert_output(command, expected, run_command(server, bucket, command))
        count += len(parts)
    assert count > 30, "the tour has become short: are its blocks still found?"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([\w./-]+)\)", (REPOSITORY / "README.md").read_text()))))
def test_links(target):
    assert (REPOSITORY / target).exists()

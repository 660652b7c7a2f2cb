"""A storage fleet: `logstead storage` six times, in three zones, each a process that can be killed, stopped and emptied."""

from __future__ import annotations

import atexit
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
import weakref
from pathlib import Path

from harness import LogsteadServer, Server, wait_until

ZONES = ("a", "a", "b", "b", "c", "c")
# Segments that end often.
SEGMENT_BYTES = 1 << 20


class Node(Server):
    """One node. Its port stays the same from one start to the next."""

    def __init__(self, root: Path, zone: str, *arguments: str, secret: str | None = None):
        super().__init__(root)
        self.zone, self.arguments = zone, arguments
        self.variables = {"LOGSTEAD_FLEET_SECRET": secret} if secret else {}
        self.port = 0

    def start(self, **options) -> "Node":
        command = [
            LogsteadServer.binary(), "storage", "--listen", f"127.0.0.1:{self.port}", "--zone", self.zone,
            "--segment-size", str(SEGMENT_BYTES), "--data", str(self.root / "data"), *self.arguments,
        ]  # fmt: skip
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
        lines = self._spawn(command, env={**environment, **self.variables}, **options)
        while True:
            try:
                line = lines.get(timeout=60)
            except queue.Empty:
                raise AssertionError(f"the node does not start\n{self.output_text()}") from None
            assert line is not None, f"the node has ended\n{self.output_text()}"
            if found := re.match(r"# storage node \w+ in zone \w+ listening on 127.0.0.1:(\d+)", line):
                self.port = int(found[1])
                return self

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def empty(self) -> None:
        """All that it has stored is gone."""
        shutil.rmtree(self.root / "data")


class ServerOnFleet(LogsteadServer):
    """A server whose home is a volume of its own on one development fleet, which all tests of a process share: `--server fleet`."""

    _fleet: subprocess.Popen | None = None
    _nodes = ""
    _data: Path

    @classmethod
    def _url(cls) -> str:
        """The fleet's URL without a volume; starts it."""
        if not cls._nodes:
            cls._data = Path(tempfile.mkdtemp(prefix="fleet"))
            command = [cls.binary(), "dev-fleet", "--data", str(cls._data), "--port", "0"]
            cls._fleet = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            atexit.register(cls._end)
            for line in cls._fleet.stdout:
                if line.startswith("fleet://"):
                    cls._nodes = line.strip().rsplit("/", 1)[0]
                    break
        return cls._nodes

    @classmethod
    def _end(cls) -> None:
        cls._fleet.terminate()
        cls._fleet.wait(60)
        shutil.rmtree(cls._data)

    @classmethod
    def _remove(cls, volume: str) -> None:
        """What a test's server has stored takes no room any more when the test is over."""
        for directory in cls._data.glob(f"node-*/volumes/{volume}"):
            shutil.rmtree(directory, ignore_errors=True)

    def __init__(self, root: Path):
        super().__init__(root)
        self.volume = f"v{uuid.uuid4().hex}"
        weakref.finalize(self, self._remove, self.volume)

    @property
    def home(self) -> str:
        return f"{self._url()}/{self.volume}"

    def command(self, *arguments: str) -> list[str]:
        command = super().command(*arguments)
        at = command.index("--data")
        command[at : at + 2] = ["--home", self.home]
        if not any("lease_duration" in argument for argument in command):
            # Whoever starts behind one that was killed waits for that.
            command += ["--set", "lease_duration=1s"]
        return command


class Fleet:
    """Six nodes, and the volume of one server on them."""

    def __init__(self, root: Path, *arguments: str, secret: str | None = None, zones: tuple[str, ...] = ZONES):
        self.root, self.arguments, self.secret = root, arguments, secret
        self.nodes: list[Node] = []
        for zone in zones:
            self._add(zone)
        # Those that the URL names.
        self.seeds = list(self.nodes)

    def _add(self, zone: str) -> Node:
        node = Node(self.root / f"node{len(self.nodes)}", zone, *self.arguments, secret=self.secret)
        self.nodes.append(node)
        return node

    def another(self, zone: str) -> Node:
        """One node more, which is running and has nothing."""
        node = self._add(zone)
        node.root.mkdir(parents=True)
        return node.start()

    def start(self) -> "Fleet":
        for node in self.nodes:
            node.root.mkdir(parents=True, exist_ok=True)
            node.start()
        return self

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def zone(self, name: str) -> list[Node]:
        return [node for node in self.nodes if node.zone == name]

    def url(self, volume: str = "main", options: str = "") -> str:
        return f"fleet://{','.join(node.address for node in self.seeds)}/{volume}{options}"

    def command(self, what: str, *arguments: str, volume: str = "main") -> subprocess.CompletedProcess:
        """`logstead fleet WHAT URL ARGUMENTS`."""
        command = [LogsteadServer.binary(), "fleet", what, self.url(volume), *arguments]
        environment = {**os.environ, **self.nodes[0].variables}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    def change(self, what: str, *arguments: str) -> None:
        told = self.command(what, *arguments)
        assert told.returncode == 0, told.stderr

    def status(self, volume: str = "main") -> list[str]:
        """What `logstead fleet status` prints: a line for each node, and one for all."""
        return self.command("status", volume=volume).stdout.splitlines()

    def wait_complete(self, copies: int = 6, timeout_s: float = 60) -> None:
        """Until each member has what the others have. While a server runs, four of six are enough for it to go on: the
        rest, also of what is removed, follows."""
        said: list[str] = []

        def is_complete() -> bool:
            said[:] = self.status()
            return said[-1] == f"{copies} of {copies} copies are complete"

        try:
            wait_until(is_complete, timeout_s=timeout_s, what=f"{copies} good copies")
        except TimeoutError as error:
            raise AssertionError("\n".join([str(error), *said])) from None

    def members(self) -> list[str]:
        """The addresses of those that are members, and are not to go."""
        lines = [line for line in self.status()[:-1] if not line.endswith((", to come", ", to go"))]
        return [line.split(": ")[0] for line in lines]

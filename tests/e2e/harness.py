"""Starts and stops the server under test: Logstead, or a real PostgreSQL to check the tests against.

Both kinds have one interface (`Server`), so that every test can be validated against PostgreSQL 15 with
`pytest --server postgres`: a test that fails there asks for something PostgreSQL does not do.
"""

from __future__ import annotations

import glob
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import psycopg

REPOSITORY = Path(__file__).resolve().parents[2]

# Generous: a wait that reaches it is a failure, never a measurement.
TIMEOUT_S = 60.0


class ServerError(Exception):
    """The server did not start or did not stop as it should."""


def wait_until(condition, timeout_s: float = TIMEOUT_S, what: str = "condition"):
    """Waits until `condition()` is true and returns its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s} s")
        time.sleep(0.02)


def free_port() -> int:
    """A port that was free a moment ago (for PostgreSQL, which cannot choose one itself)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def alive(pid: int) -> bool:
    """Whether a process exists and has not ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Server:
    """A server process with its data directory; start, stop, kill and start again."""

    name = "server"

    def __init__(self, root: Path):
        self.root = Path(root)
        self.host = "127.0.0.1"
        self.port = 0
        self.process: subprocess.Popen | None = None
        # Given at every start, before those of the start itself.
        self.arguments: list[str] = []
        # A program that runs the server's command line, its last arguments.
        self.wrapper: list[str] = []
        self.output: list[str] = []

    # -- to be given by each kind ---------------------------------------------------------------------------------
    def start(self, **options) -> "Server":
        raise NotImplementedError

    # -- the same for both ----------------------------------------------------------------------------------------
    def running(self) -> bool:
        """Whether the process is alive."""
        return self.process is not None and self.process.poll() is None

    def output_text(self) -> str:
        """What the server has printed so far (both streams)."""
        return "".join(self.output)

    def stop(self, timeout_s: float = TIMEOUT_S) -> int:
        """SIGTERM, and the exit status."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"{self.name} did not end within {timeout_s} s of SIGTERM\n{self.output_text()}")

    def kill(self) -> None:
        """kill -9, the whole process group, and waits for the end of the process."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(TIMEOUT_S)

    def restart_after_kill(self, **options) -> None:
        """kill -9 and start again on the same data."""
        self.kill()
        self.start(**options)

    def connect(self, dbname: str = "postgres", **options) -> psycopg.Connection:
        """A psycopg connection as the superuser."""
        options.setdefault("connect_timeout", 30)
        return psycopg.connect(host=self.host, port=self.port, user="postgres", dbname=dbname, **options)

    def environment(self, dbname: str = "postgres") -> dict[str, str]:
        """The environment that points libpq programs at this server."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        environment.update(PGHOST=self.host, PGPORT=str(self.port), PGUSER="postgres", PGDATABASE=dbname)
        environment.update(PGCONNECT_TIMEOUT="30", LC_ALL="C.UTF-8", PSQL_HISTORY="/dev/null")
        # Debian's psql is a Perl program that looks for this one: it takes longer than most scripts.
        environment["PATH"] = f"/usr/lib/postgresql/15/bin:{environment.get('PATH', '')}"
        return environment

    def run(self, *command, check: bool = True, stdin: str | None = None, timeout_s: float = 300.0, env=None):
        """Runs a client program against this server and returns its completed process (text mode)."""
        result = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**self.environment(), **(env or {})},
        )
        if check and result.returncode != 0:
            raise AssertionError(
                f"{' '.join(map(str, command))} ended with {result.returncode}\n{result.stdout}{result.stderr}"
            )
        return result

    def psql(self, *arguments, check: bool = True, stdin: str | None = None) -> str:
        """psql's standard output; `-X` and stop-on-error are set."""
        command = ["psql", "-X", "-v", "ON_ERROR_STOP=1", *arguments]
        return self.run(*command, check=check, stdin=stdin).stdout

    def execute(self, *statements: str) -> list:
        """Runs statements in autocommit mode; the rows of the last one, if it gave any."""
        with self.connect(autocommit=True) as connection:
            rows = []
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def _spawn(self, command: list[str], **options) -> "queue.Queue[str | None]":
        """Starts the process; its output is collected and also put on the queue that is returned (None at its end)."""
        self.output = []
        self.process = subprocess.Popen(
            [*self.wrapper, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            **options,
        )
        lines: queue.Queue[str | None] = queue.Queue()
        stream, collected = self.process.stdout, self.output

        def collect():
            for line in stream:
                collected.append(line)
                lines.put(line)
            lines.put(None)

        threading.Thread(target=collect, daemon=True).start()
        return lines


class LogsteadServer(Server):
    """`logstead serve` on a port that the system chooses."""

    name = "logstead"

    @staticmethod
    def binary() -> str:
        """The program: $E2E_SERVER_BIN, else the newest build."""
        given = os.environ.get("E2E_SERVER_BIN")
        if given:
            return given
        target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
        built = [path for path in (target / "release/logstead", target / "debug/logstead") if path.exists()]
        if not built:
            raise ServerError(f"no logstead program under {target}: run `cargo build --release`, or set E2E_SERVER_BIN")
        return str(max(built, key=lambda path: path.stat().st_mtime))

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.root / "data"

    @property
    def home(self) -> str:
        """Where its log is, for the program's tools."""
        return str(self.data)

    def command(self, *arguments: str) -> list[str]:
        """The command line of `logstead serve` for this data directory."""
        arguments = (*self.arguments, *arguments)
        listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
        if not any("autovacuum" in argument for argument in arguments):
            # Plans must not change while a test looks at them.
            listen += ["--set", "autovacuum=off"]
        return [self.binary(), "serve", *listen, "--data", str(self.data), *arguments]

    def start(self, arguments=(), env=None, timeout_s: float = TIMEOUT_S, wait: bool = True) -> "LogsteadServer":
        """Starts and, unless told otherwise, waits for the line that names the port."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
        if os.environ.get("E2E_INSTANCES"):
            # Any test with so many instances; what it says itself wins.
            environment["LOGSTEAD_INSTANCES"] = os.environ["E2E_INSTANCES"]
        environment.update(env or {})
        self.root.mkdir(parents=True, exist_ok=True)
        lines = self._spawn(self.command(*arguments), env=environment, cwd=self.root)
        if not wait:
            return self
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise ServerError(f"logstead did not say where it listens within {timeout_s} s\n{self.output_text()}")
            if line is None:
                status = self.process.wait(TIMEOUT_S)
                raise ServerError(f"logstead ended with {status} before it listened\n{self.output_text()}")
            found = re.search(r"listening on (\S+):(\d+)", line)
            if found:
                self.port = int(found.group(2))
                return self


class PostgresServer(Server):
    """A private PostgreSQL cluster, durable like the server under test."""

    name = "postgres"

    def __init__(self, root: Path, settings: dict[str, str] | None = None, waldir: Path | None = None):
        super().__init__(root)
        self.settings = settings or {}
        self.waldir = waldir

    @staticmethod
    def program(name: str) -> str:
        """A PostgreSQL server program, which Debian keeps off the PATH."""
        found = sorted(glob.glob(f"/usr/lib/postgresql/15/bin/{name}")) or [shutil.which(name)]
        if not found[0]:
            raise ServerError(f"PostgreSQL 15's {name} is not installed (Debian: postgresql-15)")
        return found[0]

    @staticmethod
    def _identity() -> dict:
        """PostgreSQL refuses to run as root: use its own user then."""
        return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    @property
    def data(self) -> Path:
        """The cluster's directory."""
        return self.root / "pgdata"

    def _initialise(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        os.chmod(self.root, 0o777)
        for parent in self.root.parents:
            if parent == Path("/tmp"):
                break
            # pytest makes its directories private; the other user must get through.
            if parent.stat().st_uid == os.geteuid() and parent.stat().st_mode & 0o011 != 0o011 and len(parent.parts) > 2:
                os.chmod(parent, parent.stat().st_mode | 0o011)
        command = [self.program("initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync"]
        command += ["-E", "UTF8", "--locale=C.UTF-8", "--lc-messages=C"]
        if self.waldir:
            self.waldir.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                shutil.chown(self.waldir, "postgres", "postgres")
            command += ["-X", str(self.waldir)]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", **self._identity())
        if done.returncode != 0:
            raise ServerError(f"initdb failed\n{done.stdout}{done.stderr}")

    def start(self, arguments=(), env=None, timeout_s: float = TIMEOUT_S, wait: bool = True) -> "PostgresServer":
        """Starts and, unless told otherwise, waits until it answers."""
        if not self.data.exists():
            self._initialise()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        if not self.port:
            self.port = free_port()
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "300",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "lc_messages": "C",
            "datestyle": "ISO, MDY",
            **self.settings,
        }
        command = [self.program("postgres"), "-D", str(self.data)]
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        self._spawn([*command, *arguments], cwd="/", env={**os.environ, **(env or {})}, **self._identity())
        if wait:
            wait_until(self._answers, timeout_s, f"PostgreSQL on port {self.port}")
        return self

    def _answers(self) -> bool:
        if not self.running():
            raise ServerError(f"PostgreSQL ended\n{self.output_text()}")
        try:
            with self.connect(connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def kill(self) -> None:
        """kill -9 of the postmaster and of every backend (each is a process group of its own)."""
        if self.process is None:
            return
        children = []
        if self.running():
            # Stopped first, so that no backend is born between the listing and the kill.
            self.process.send_signal(signal.SIGSTOP)
            listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
            children = [int(pid) for pid in listing.stdout.split()]
        super().kill()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # The shared memory must be free before the next start.
        wait_until(lambda: not any(alive(pid) for pid in children), what="the backends' end")


KINDS = {"logstead": LogsteadServer, "postgres": PostgresServer}

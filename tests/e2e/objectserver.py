"""`logstead serve` on an object store: in a directory where it must leave nothing, and perhaps through a proxy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from faultproxy import FaultProxy
from harness import LogsteadServer, Server, wait_until
from objectstores import AZURE_ACCOUNT, ObjectStore, start
from transfers import Bank

# One of each kind: appends by S3 Express's protocol and by Azure's, and two S3 without.
STORES = ("dev-bucket", "azurite", "versitygw", "moto")
# A small request's time limit in milliseconds: what the proxy never answers is found out soon.
IMPATIENT = {"timeout": 1500}
# A start reads the whole log. Where each append is an object, that is many requests, of which faults injure every sixth.
START_S = 300


def home(store: ObjectStore, prefix: str = "log", proxy: FaultProxy | None = None, **options) -> str:
    """The URL of a home that names its endpoint: the store's, or the proxy before it."""
    host = proxy.address if proxy else f"{store.host}:{store.port}"
    path = f"/{AZURE_ACCOUNT}" if store.scheme == "azure" else ""
    options = {"endpoint": f"http://{host}{path}", **options}
    return f"{store.url(prefix)}?" + "&".join(f"{name}={value}" for name, value in options.items())


def go_on(server: Server, bank: Bank, transfers: int) -> None:
    """Until clients have been told of so many more."""
    goal = bank.acknowledged() + transfers

    def there() -> bool:
        bank.assert_right()
        assert server.running(), f"the server ended\n{server.output_text()[-3000:]}"
        return bank.acknowledged() >= goal

    wait_until(there, timeout_s=240, what=f"{transfers} more transfers")


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """Each real store, with a new empty bucket."""
    with start(request.param, tmp_path) as store:
        yield store


class ObjectServer(LogsteadServer):
    """A server whose only home is a URL. Every start is in a new empty directory, which has to stay empty."""

    def __init__(self, root: Path, url: str, environment: dict[str, str], *arguments: str):
        super().__init__(root)
        self.base, self.starts = root, 0
        self.url = url
        self.credentials = environment
        self.arguments = ["--workers", "3", *arguments]
        # There is one of the machine that runs the tests: who is started again after kill -9 need not wait for its own lease.
        self.never_copied = True

    def command(self, *arguments: str) -> list[str]:
        never_copied = ["--set", "machine_is_never_copied=on"] if self.never_copied else []
        arguments = (*self.arguments, *arguments)
        listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
        return [self.binary(), "serve", *listen, "--home", self.url, *never_copied, *arguments]

    def start(self, arguments=(), env=None, **options) -> "ObjectServer":
        self.starts += 1
        self.root = self.base / f"start{self.starts}"
        # Whatever a program takes for a place to write.
        places = {name: str(self.root) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        super().start(arguments, env={**places, **self.credentials, **(env or {})}, **options)
        return self

    def assert_no_disk(self) -> None:
        """The running server has no file open for writing, has written nothing to any disk, and its directory is empty."""
        assert self.running()
        pid = self.process.pid
        written = [line for line in Path(f"/proc/{pid}/io").read_text().splitlines() if line.startswith("write_bytes:")]
        assert written == ["write_bytes: 0"], written
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                flags = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
            except FileNotFoundError:
                continue  # Closed meanwhile.
            access = int(flags.partition("flags:")[2].split()[0], 8) & os.O_ACCMODE
            is_file = target.startswith("/") and not target.startswith("/dev/")
            assert not (is_file and access != os.O_RDONLY), f"{target} is open for writing"
        left = [path for path in self.base.rglob("*") if not path.is_dir()]
        assert not left, f"files were made: {left}"


def log(server: ObjectServer, what: str, url: str | None = None) -> subprocess.CompletedProcess:
    """`logstead log verify|dump URL`"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
    command = [server.binary(), "log", what, url or server.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**environment, **server.credentials})

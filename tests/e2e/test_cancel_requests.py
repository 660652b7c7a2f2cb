"""A CancelRequest needs none of the workers: it is carried out by who accepts connections."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import TIMEOUT_S
from rawwire import CANCEL, Wire, query

pytestmark = pytest.mark.logstead_only

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


@pytest.fixture(scope="module")
def one_worker(server_kind, tmp_path_factory):
    """A server with one worker."""
    server = server_kind(tmp_path_factory.mktemp("one_worker"))
    server.start(("--workers", "1"))
    yield server
    server.kill()


@contextmanager
def stopped(server, name: str):
    """One thread of the server stands still, as if it computed and never looked up."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    libc.ptrace.restype = ctypes.c_long

    def trace(request: int) -> None:
        if libc.ptrace(request, thread, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")

    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    thread = next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
    trace(PTRACE_SEIZE)
    try:
        trace(PTRACE_INTERRUPT)
        os.waitpid(thread, WALL)
        yield
    finally:
        trace(PTRACE_DETACH)


def cancel(server, process: int, secret: int) -> bytes:
    """Sends a CancelRequest and gives what comes until the server closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(struct.pack("!iiii", 16, CANCEL, process, secret))
        return connection.recv(100)


def test_it_is_carried_out_while_the_only_worker_is_held(one_worker):
    wire = Wire(one_worker)
    wire.send(query("SELECT pg_sleep(1000)"))
    with one_worker.connect(autocommit=True) as other:
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND query LIKE '%%pg_sleep(1000)%%' AND state = 'active'"
        while other.execute(asleep, (wire.process,)).fetchone() == (0,):
            pass
    with stopped(one_worker, "worker-0"):
        # The end tells that it has been read and done; nobody else is answered meanwhile.
        assert cancel(one_worker, wire.process, wire.secret) == b""
        with pytest.raises(TimeoutError):
            silent = Wire(one_worker, start=False)
            silent.send(struct.pack("!ii", 8, 80877103))
            silent.socket.settimeout(0.3)
            silent.socket.recv(1)
    errors = [message for message in wire.until("Z") if message.kind == "E"]
    assert [error.fields["C"] for error in errors] == ["57014"]


def test_a_wrong_secret_cancels_nothing(one_worker):
    wire = Wire(one_worker)
    wire.send(query("SELECT pg_sleep(0.5)"))
    assert cancel(one_worker, wire.process, wire.secret ^ 1) == b""
    assert cancel(one_worker, wire.process + 1, wire.secret) == b""
    assert "E" not in [message.kind for message in wire.until("Z")]


def test_who_says_nothing_is_counted_and_cut_off(server_kind, tmp_path):
    """They hold a descriptor each, so they are clients like others until `authentication_timeout` is over."""
    server = server_kind(tmp_path / "silent")
    server.start(("--workers", "1", "--set", "max_connections=10", "--set", "authentication_timeout=2s"))
    try:
        silent = [socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) for _ in range(200)]
        assert [message.fields["C"] for message in Wire(server, start=False).closed()] == ["53300"]
        ended = []
        threads = [threading.Thread(target=lambda one=one: ended.append(one.recv(1000))) for one in silent]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_S)
        assert len(ended) == len(silent)
        told = [answer for answer in ended if answer]
        assert told and all(b"53300" in answer for answer in told)
        assert ended.count(b"") > 10
        assert server.execute("SELECT 1") == [(1,)]
    finally:
        server.kill()

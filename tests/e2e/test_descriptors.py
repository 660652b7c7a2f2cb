"""Open files: log and checkpoints have theirs whatever clients take, and a client too many is told so at once."""

from __future__ import annotations

import psycopg
import pytest
from harness import wait_until

pytestmark = pytest.mark.logstead_only

LIMIT = 256
CLIENTS = 300


@pytest.mark.timeout(300)
def test_clients_do_not_take_the_log_s_files(private_server):
    private_server.wrapper = ["prlimit", f"--nofile={LIMIT}:{LIMIT}"]
    private_server.start(arguments=("--workers", "2"))
    (told,) = [line for line in private_server.output if "open files are allowed" in line]
    most = int(private_server.execute("SHOW max_connections")[0][0])
    assert 64 <= most < LIMIT and f"max_connections is {most} instead of" in told
    connections = []
    try:
        refused = 0
        for _ in range(CLIENTS):
            try:
                connections.append(private_server.connect(autocommit=True, connect_timeout=5))
            except psycopg.OperationalError as error:
                assert "sorry, too many clients already" in str(error), error
                refused += 1
        assert len(connections) == most and refused == CLIENTS - most
        one = connections[0]
        one.execute("CREATE TABLE t (id int PRIMARY KEY, pad text)")
        for round_ in range(3):
            one.execute("INSERT INTO t SELECT g, repeat('x', 900) FROM generate_series(%s::int, %s) g", (round_ * 5000, round_ * 5000 + 4999))
            one.execute("CHECKPOINT")
        assert connections[-1].execute("SELECT count(*) FROM t").fetchone() == (15_000,)
    finally:
        for connection in connections:
            connection.close()
    # Places are free again.
    assert private_server.execute("SELECT count(*) FROM t") == [(15_000,)]
    assert private_server.stop() == 0


@pytest.mark.timeout(60)
def test_crowds_beyond_are_told_so_without_a_place(private_server):
    """More at once than are talked to: each is refused in the same words, and none waits."""
    private_server.wrapper = ["prlimit", f"--nofile={LIMIT}:{LIMIT}"]
    private_server.start(arguments=("--workers", "2", "--set", "max_connections=5"))
    import socket

    crowd = [socket.create_connection((private_server.host, private_server.port), timeout=10) for _ in range(150)]
    try:
        answers = []
        for client in crowd[-20:]:
            # Nothing was said yet.
            answers.append(client.recv(200))
        assert all(answer[:1] == b"E" and b"C53300\0" in answer and b"too many clients" in answer for answer in answers), answers
    finally:
        for client in crowd:
            client.close()

    def has_place() -> bool:
        try:
            return private_server.execute("SELECT 1") == [(1,)]
        except psycopg.OperationalError as error:
            # The server has not seen all of them go yet. During the exchange about encryption the words are not shown.
            assert "too many clients" in str(error) or "during SSL exchange" in str(error), error
            return False

    wait_until(has_place, what="there is a place again")


def test_too_few_files_are_no_start(private_server):
    private_server.wrapper = ["prlimit", "--nofile=100:100"]
    with pytest.raises(Exception, match="insufficient file descriptors"):
        private_server.start()

"""Clients and proxies find the primary and its replicas: HAProxy by its health checks, JDBC by `targetServerType`.

libpq is in test_replica.py and test_promotion.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from harness import free_port, wait_until
from test_promotion import is_primary, promote
from test_replica import metrics_port, pair

pytestmark = pytest.mark.logstead_only

METRICS = ("--metrics-listen", "127.0.0.1:0")
CLIENTS = Path(__file__).parent / "clients"

CONFIGURATION = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout check 2s
    http-check expect status 200
    default-server inter 100ms fall 1 rise 1 on-marked-down shutdown-sessions
"""


def section(name: str, port: int, path: str, servers) -> str:
    lines = [f"listen {name}", f"    bind 127.0.0.1:{port}", f"    option httpchk OPTIONS /{path}"]
    lines += [f"    server s{at} 127.0.0.1:{server.port} check port {metrics_port(server)}" for at, server in enumerate(servers)]
    return "\n".join(lines) + "\n"


@contextmanager
def haproxy(tmp_path: Path, servers):
    """HAProxy with a port for the primary and one for replicas, configured as Patroni's documents say."""
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    write, read = free_port(), free_port()
    file = tmp_path / "haproxy.cfg"
    file.write_text(CONFIGURATION + section("write", write, "primary", servers) + section("read", read, "replica", servers))
    with (tmp_path / "haproxy.log").open("w") as log:
        process = subprocess.Popen([program, "-f", str(file), "-db"], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield write, read
    finally:
        process.kill()
        process.wait(60)


def reaches(port: int) -> int | None:
    """The port of the server behind a proxy's port; nothing if none answers there."""
    try:
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5") as connection:
            return connection.execute("SELECT inet_server_port()").fetchone()[0]
    except psycopg.OperationalError:
        return None


def test_haproxy_follows_a_promotion(tmp_path):
    """The port of writes leads to the primary, that of reads to a replica, before and after; without a primary to nobody."""
    with pair("file", tmp_path, replicas=2, arguments=METRICS) as (primary, replicas):
        for replica in replicas:
            replica.kill()
            replica.arguments += METRICS
            replica.start()
        first, second = replicas
        primary.execute("CREATE TABLE t (id int)")
        with haproxy(tmp_path, [primary, *replicas]) as (write, read):
            wait_until(lambda: reaches(write) == primary.port, what="the primary behind the proxy")
            wait_until(lambda: reaches(read) in (first.port, second.port), what="a replica behind the proxy")
            with psycopg.connect(f"host=127.0.0.1 port={write} user=postgres dbname=postgres") as connection:
                connection.execute("INSERT INTO t VALUES (1)")
            first.follows(primary)
            primary.kill()
            wait_until(lambda: reaches(write) is None, what="the proxy to notice")
            assert promote(first).returncode == 0
            wait_until(lambda: is_primary(first), what="the promotion")
            wait_until(lambda: reaches(write) == first.port, what="the new primary behind the proxy")
            wait_until(lambda: reaches(read) == second.port, what="the other replica behind the proxy")
            with psycopg.connect(f"host=127.0.0.1 port={write} user=postgres dbname=postgres") as connection:
                connection.execute("INSERT INTO t VALUES (2)")
            assert first.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_jdbc_finds_the_server_that_it_wants(tmp_path):
    """`targetServerType` with both hosts, in both orders, and after a promotion."""
    jar = os.environ.get("E2E_JDBC_JAR")
    assert jar, "no JDBC driver: set E2E_JDBC_JAR"

    def found(servers, *types: str) -> list[str]:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        command = ["java", "-cp", jar, str(CLIENTS / "jdbc/ServerTypes.java"), hosts, *types]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    types = ("any", "primary", "secondary", "preferSecondary", "preferPrimary")
    with pair("file", tmp_path) as (primary, (replica,)):
        p, r = primary.port, replica.port
        expected = [f"primary primary {p}", f"secondary standby {r}", f"preferSecondary standby {r}", f"preferPrimary primary {p}"]
        assert found((primary, replica), *types) == [f"any primary {p}", *expected]
        assert found((replica, primary), *types) == [f"any standby {r}", *expected]
        primary.kill()
        assert found((primary, replica), "primary", "secondary") == ["primary none", f"secondary standby {r}"]
        assert promote(replica).returncode == 0
        wait_until(lambda: is_primary(replica), what="the promotion")
        assert found((primary, replica), "primary", "secondary") == [f"primary primary {r}", "secondary none"]

"""Sockets of the file system: where they are, who may use them, and what becomes of those that were left behind."""

from __future__ import annotations

import getpass
import os
import socket
import stat
from pathlib import Path

import psycopg
import pytest
from harness import REPOSITORY, LogsteadServer
from test_authentication import settings
from test_operation import refused

pytestmark = pytest.mark.logstead_only


def at(directory: Path) -> list[str]:
    """The argument for sockets in this directory."""
    return ["--unix-socket-directories", str(directory)]


def psql(server, directory: Path, *arguments: str, **environment: str):
    """psql by the socket, as the superuser unless told otherwise."""
    return server.run(
        "psql", "-X", "-w", "-At", "-h", str(directory), "-p", str(server.port), *arguments,
        check=False, env={"PGUSER": "postgres", "PGPASSFILE": "/nonexistent", **environment},
    )  # fmt: skip


@pytest.fixture
def directory(tmp_path_factory) -> Path:
    """Short: a socket's path has 107 bytes at most."""
    return tmp_path_factory.mktemp("s")


def test_a_client_of_this_machine_comes_by_the_socket(private_server, directory):
    server = private_server.start(at(directory))
    name = f".s.PGSQL.{server.port}"
    assert sorted(os.listdir(directory)) == [name, f"{name}.lock"]
    assert stat.S_IMODE((directory / name).stat().st_mode) == 0o777
    lock = (directory / f"{name}.lock").read_text().splitlines()
    assert lock[0] == str(server.process.pid) and lock[3:] == [str(server.port), str(directory)]
    told = psql(server, directory, "-c", "SELECT client_addr IS NULL, client_port, inet_client_addr() IS NULL, inet_server_port() IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    assert told.stdout == "t|-1|t|t\n", told.stderr
    assert psql(server, directory, "-c", "SHOW unix_socket_directories").stdout == f"{directory}\n"
    assert psql(server, directory, "-c", "SHOW port").stdout == f"{server.port}\n"
    # Whatever a client does by an address it does here: a cancel request, much data, an error.
    with psycopg.connect(host=str(directory), port=server.port, user="postgres", dbname="postgres", autocommit=True) as connection:
        assert connection.execute("SELECT sum(length(t)) FROM (SELECT repeat('x', 1000) t FROM generate_series(1, 5000)) s").fetchone() == (5_000_000,)
        assert len(connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 5000)").fetchall()) == 5000
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
    assert server.stop() == 0
    assert os.listdir(directory) == []


def test_permissions_and_several_directories(private_server, tmp_path_factory):
    first, second = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    server = private_server.start(["--unix-socket-directories", f"{first}, {second}", "--unix-socket-permissions", "0700"])
    for directory in (first, second):
        assert stat.S_IMODE((directory / f".s.PGSQL.{server.port}").stat().st_mode) == 0o700
        assert psql(server, directory, "-c", "SELECT 1").stdout == "1\n"
    assert psql(server, first, "-c", "SHOW unix_socket_permissions").stdout == "0700\n"
    server.stop()
    # None at all.
    server.start(["--unix-socket-directories", ""])
    assert os.listdir(first) == [] and psql(server, first, "-c", "SELECT 1").returncode == 2


def test_two_servers_do_not_share_one(private_server, directory, tmp_path):
    server = private_server.start(at(directory))
    other = LogsteadServer(tmp_path / "other")
    said = refused(other, "--listen", f"127.0.0.2:{server.port}", *at(directory))
    assert f"another server (PID {server.process.pid}) is using the socket file" in said
    assert psql(server, directory, "-c", "SELECT 1").stdout == "1\n"
    # What a server that was killed has left is in nobody's way.
    server.kill()
    assert len(os.listdir(directory)) == 2
    server.start(["--listen", f"127.0.0.1:{server.port}", *at(directory)])
    assert psql(server, directory, "-c", "SELECT 1").stdout == "1\n"
    server.stop()
    # Nor is anything removed that is not a socket, nor one that somebody answers on.
    occupied = directory / f".s.PGSQL.{server.port}"
    occupied.write_text("precious")
    assert "is not a socket" in refused(server, "--listen", f"127.0.0.1:{server.port}", *at(directory))
    assert occupied.read_text() == "precious"
    occupied.unlink()
    with socket.socket(socket.AF_UNIX) as somebody:
        somebody.bind(str(occupied))
        somebody.listen()
        assert "is using the socket file" in refused(server, "--listen", f"127.0.0.1:{server.port}", *at(directory))
    assert "too long" in refused(server, *at(Path("/tmp") / ("x" * 120)))


LOCAL = '[[hba]]\ntype = "local"\n'


def test_peers_are_who_the_system_says(private_server, directory):
    me = getpass.getuser()
    server = private_server.start([*settings(private_server, LOCAL + 'method = "peer"\n[[hba]]\naddress = "127.0.0.1"\nmethod = "trust"\n'), *at(directory)])
    denied = psql(server, directory, "-c", "SELECT 1")
    if me != "postgres":
        assert denied.returncode == 2 and 'Peer authentication failed for user "postgres"' in denied.stderr
    server.execute(f'CREATE ROLE "{me}" LOGIN SUPERUSER')
    told = psql(server, directory, "-d", "postgres", "-c", "SELECT current_user", PGUSER=me)
    assert told.stdout == f"{me}\n", told.stderr
    server.stop()
    maps = f'''
{LOCAL}user = "postgres"
method = "peer"
map = "admins"
{LOCAL}method = "peer"
map = "anybody"
[[ident]]
map = "admins"
system = "{me}"
user = "postgres"
[[ident]]
map = "anybody"
system = "/^(.)"
user = '\\1_first'
'''
    server.start([*settings(server, maps), *at(directory)])
    assert psql(server, directory, "-c", "SELECT current_user").stdout == "postgres\n"
    assert psql(server, directory, "-c", f'CREATE ROLE "{me[0]}_first" LOGIN; CREATE ROLE nobody LOGIN').returncode == 0
    assert psql(server, directory, "-d", "postgres", "-c", "SELECT 1", PGUSER=f"{me[0]}_first").stdout == "1\n"
    assert "Peer authentication failed" in psql(server, directory, "-d", "postgres", "-c", "SELECT 1", PGUSER="nobody").stderr
    # Rules for sockets are for nobody else.
    with pytest.raises(psycopg.OperationalError, match="no pg_hba.conf entry"):
        server.connect()


def test_passwords_and_rules_by_the_socket(private_server, directory):
    rules = LOCAL + 'user = "evil"\nmethod = "reject"\n' + LOCAL + 'method = "scram-sha-256"\n'
    server = private_server.start([*settings(private_server, rules), *at(directory)], env={"LOGSTEAD_PASSWORD": "geheim"})
    assert psql(server, directory, "-c", "SELECT 1", PGPASSWORD="geheim").stdout == "1\n"
    assert "password authentication failed" in psql(server, directory, "-c", "SELECT 1", PGPASSWORD="wrong").stderr
    assert 'pg_hba.conf rejects connection for host "[local]", user "evil"' in psql(server, directory, "-c", "SELECT 1", PGUSER="evil").stderr
    server.stop()
    # Rules for addresses let nobody in by a socket; and without rules a password is asked for, as of anybody.
    server.start([*settings(server, '[[hba]]\naddress = "127.0.0.1"\nmethod = "trust"\n'), *at(directory)])
    assert 'no pg_hba.conf entry for host "[local]", user "postgres"' in psql(server, directory, "-c", "SELECT 1").stderr
    server.stop()
    server.start(at(directory))
    assert psql(server, directory, "-c", "SELECT 1").returncode == 2
    assert psql(server, directory, "-c", "SELECT 1", PGPASSWORD="geheim").stdout == "1\n"


def test_the_environment_of_a_pod_stops_no_start(private_server):
    pod = {
        "LOGSTEAD_PORT": "tcp://10.0.0.7:5433",
        "LOGSTEAD_SERVICE_HOST": "10.0.0.7",
        "LOGSTEAD_SERVICE_PORT": "5433",
        "LOGSTEAD_PORT_5433_TCP_ADDR": "10.0.0.7",
        "LOGSTEAD_WORKERS": "1",
    }
    server = private_server.start(env=pod)
    said = server.output_text()
    for name in pod:
        assert (name in said) == (name != "LOGSTEAD_WORKERS")
    assert server.execute("SHOW workers") == [("1",)]
    assert server.execute("SHOW port") == [(str(server.port),)]
    server.stop()
    # Where people write settings an unknown one is a mistake.
    assert 'unknown setting "no_such"' in refused(server, "--set", "no_such=1")
    assert 'unknown setting "no_such"' in refused(server, *settings(server, "no_such = 1\n"))
    assert "log_statement" in refused(server, "--set", "log_statement=all")


def test_symbols_lie_beside_the_program(tmp_path):
    """What ./run does to the program: small, and a panic still names its lines."""
    (tmp_path / "panics.rs").write_text('fn main() {\n    inner();\n}\n\n#[inline(never)]\nfn inner() {\n    panic!("here");\n}\n')
    program = tmp_path / "panics"
    script = f'''
set -euo pipefail
. "{REPOSITORY}/scripts/environment.sh"
rustc -C debuginfo=line-tables-only -o "{program}" "{tmp_path}/panics.rs"
cp "{program}" "{tmp_path}/whole"
symbols_beside "{program}"
stripped=$(stat -c %i "{program}")
symbols_beside "{program}"
test "$stripped" = "$(stat -c %i "{program}")"
# cargo puts its own file back, with the time when it was made: what was made of it is taken again.
ln -f "{tmp_path}/whole" "{program}"
touch -d '1 hour ago' "{program}"
symbols_beside "{program}"
test "$stripped" = "$(stat -c %i "{program}")"
'''
    server = LogsteadServer(tmp_path)
    server.run("bash", "-c", script)
    assert program.stat().st_size < (tmp_path / "whole").stat().st_size / 2
    backtrace = server.run(str(program), check=False, env={"RUST_BACKTRACE": "1"}).stderr
    assert "panics.rs:7" in backtrace and "panics.rs:2" in backtrace

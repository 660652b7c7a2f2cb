"""A CancelRequest reaches a session that came by TLS: unencrypted, as libpq before 17 sends it, and encrypted."""

from __future__ import annotations

import signal
import socket
import ssl
import struct
import subprocess
import threading

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until
from rawwire import CANCEL, Wire, query
from test_authentication import SSL_REQUEST, encrypted, settings

pytestmark = pytest.mark.logstead_only

#: Who is not encrypted does not get in.
ENCRYPTED_ALONE = '[[hba]]\ntype = "hostssl"\naddress = "all"\nmethod = "trust"\n'
LONG = "SELECT pg_sleep(1000)"


@pytest.fixture
def encrypted_server(private_server, certificate):
    private_server.start(settings(private_server, encrypted(certificate, ENCRYPTED_ALONE)))
    return private_server


def connect(server) -> psycopg.Connection:
    return psycopg.connect(
        host=server.host, port=server.port, user="postgres", dbname="postgres", sslmode="require", autocommit=True
    )


def runs(watcher: psycopg.Connection) -> bool:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(1000)%' AND state = 'active'"
    return watcher.execute(asked).fetchone() == (1,)


def test_psql_is_interrupted(encrypted_server):
    command = ["psql", "-X", "-w", "-At", "-h", encrypted_server.host, "-p", str(encrypted_server.port), "-U", "postgres"]
    environment = {"PGSSLMODE": "require", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    with connect(encrypted_server) as watcher:
        script = f"{LONG};\nSELECT 'goes on';\n"
        psql = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            psql.stdin.write(script)
            psql.stdin.flush()
            wait_until(lambda: runs(watcher), what="the statement runs")
            psql.send_signal(signal.SIGINT)
            said, errors = psql.communicate(timeout=TIMEOUT_S)
        finally:
            psql.kill()
        assert "canceling statement due to user request" in errors, errors
        # Reading a script from elsewhere than a terminal goes on behind it, in the same session.
        assert said.strip() in ("goes on", "")


@pytest.mark.parametrize("how", ["cancel", "cancel_safe"])
def test_the_library_cancels(encrypted_server, how):
    """`cancel_safe` asks over an encrypted connection, and hears an end that is no failure."""
    with connect(encrypted_server) as watcher, connect(encrypted_server) as connection:
        ended: list[psycopg.Error] = []

        def sleep():
            try:
                connection.execute(LONG)
            except psycopg.Error as error:
                ended.append(error)

        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        wait_until(lambda: runs(watcher), what="the statement runs")
        getattr(connection, how)()
        sleeper.join(TIMEOUT_S)
        assert [error.sqlstate for error in ended] == ["57014"]
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.fixture
def session(encrypted_server):
    """A session on the level of bytes, encrypted, in a statement; and what an encrypted connection is made with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def encrypt(plain: socket.socket) -> ssl.SSLSocket:
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"S"
        return context.wrap_socket(plain)

    wire = Wire(encrypted_server, start=False)
    wire.socket = encrypt(wire.socket)
    wire.begin()
    wire.send(query(LONG))
    with connect(encrypted_server) as watcher:
        wait_until(lambda: runs(watcher), what="the statement runs")
    with wire:
        yield wire, encrypt


@pytest.mark.parametrize("how", ["plain", "encrypted"])
def test_a_request_needs_no_encryption_and_may_have_it(encrypted_server, session, how):
    wire, encrypt = session

    def request(secret: int) -> bytes:
        with socket.create_connection((encrypted_server.host, encrypted_server.port), timeout=TIMEOUT_S) as plain:
            stream = encrypt(plain) if how == "encrypted" else plain
            stream.sendall(struct.pack("!iiii", 16, CANCEL, wire.process, secret))
            return stream.recv(100)

    # Another secret is nobody's.
    assert request(wire.secret ^ 1) == b""
    with connect(encrypted_server) as watcher:
        assert runs(watcher)
    assert request(wire.secret) == b""
    errors = [message for message in wire.until("Z") if message.kind == "E"]
    assert [error.fields["C"] for error in errors] == ["57014"]

"""What nobody should send: the answer is an error to that client or a closed connection, and nobody else notices."""

import random
import resource
import socket
import struct
import threading
import time

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until
from rawwire import (
    CANCEL,
    PROTOCOL_3,
    SYNC,
    Wire,
    bind,
    describe,
    error,
    execute,
    kinds,
    message,
    parse,
    query,
    rows,
    startup,
    text,
)


@pytest.fixture(autouse=True)
def others_unharmed(server):
    """Another client works before and after, and no lock is left behind."""
    server.execute("DROP TABLE IF EXISTS abuse", "CREATE TABLE abuse (id int PRIMARY KEY, v text)", "INSERT INTO abuse VALUES (1, 'x')")
    with server.connect(autocommit=True) as bystander:
        yield
        assert bystander.execute("SELECT 1").fetchone() == (1,)
        bystander.execute("SET statement_timeout = '30s'")
        bystander.execute("UPDATE abuse SET v = 'y' WHERE id = 1")
        bystander.execute("DROP TABLE abuse")


STARTUPS = {
    "nothing": b"",
    "length-0": struct.pack("!ii", 0, PROTOCOL_3),
    "length-4": struct.pack("!i", 4),
    "length-negative": struct.pack("!ii", -1, PROTOCOL_3),
    "length-2GB": struct.pack("!ii", 0x7FFFFFFF, PROTOCOL_3) + b"x" * 100,
    "length-20000": struct.pack("!ii", 20000, PROTOCOL_3) + b"user\0" + b"x" * 19980,
    "half-a-length": b"\0\0",
    "protocol-2": struct.pack("!ii", 8, 2 << 16),
    "protocol-9": struct.pack("!ii", 9, 9 << 16) + b"\0",
    "no-terminator": struct.pack("!ii", 12, PROTOCOL_3) + b"user",
    "no-user": struct.pack("!ii", 9, PROTOCOL_3) + b"\0",
    "name-without-value": struct.pack("!ii", 13, PROTOCOL_3) + b"user\0",
    "invalid-utf8": struct.pack("!ii", 17, PROTOCOL_3) + b"user\0\xff\xfe\0\0",
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls-hello": bytes.fromhex("1603010200010001fc0303") + b"\0" * 200,
    "short-cancel": struct.pack("!ii", 8, CANCEL),
    "cancel-of-nobody": struct.pack("!iiii", 16, CANCEL, 0x7FFFFFFF, 1234),
    "noise": random.Random(7).randbytes(2000),
}


@pytest.mark.parametrize("sent", STARTUPS.values(), ids=STARTUPS)
def test_startup_packets(server, sent):
    with Wire(server, start=False) as wire:
        wire.send(sent)
        wire.end()
        # Either an ErrorResponse and the end, or just the end; never a session.
        try:
            assert "Z" not in kinds(wire.closed())
        except (struct.error, UnicodeDecodeError):
            pass


def test_refused_startups(server):
    for parameters, sqlstate in [({"database": "nowhere"}, "3D000"), ({"user": "nobody"}, "28000"), ({"nosuch_setting": "1"}, "42704")]:
        with pytest.raises(ConnectionError) as caught:
            Wire(server, **parameters)
        assert caught.value.args[0]["C"] == sqlstate and caught.value.args[0]["S"] == "FATAL"


MESSAGES = {
    "unknown-type": message("?", b"hello"),
    "type-0": b"\0" + struct.pack("!i", 4),
    "length-0": b"Q" + struct.pack("!i", 0),
    "length-3": b"Q" + struct.pack("!i", 3),
    "length-negative": b"Q" + struct.pack("!i", -5),
    "length-2GB": b"Q" + struct.pack("!i", 0x7FFFFFFF) + b"x" * 1000,
    "sync-too-long": b"S" + struct.pack("!i", 0x7FFFFFFF),
    "noise": random.Random(8).randbytes(5000),
}


@pytest.mark.parametrize("sent", MESSAGES.values(), ids=MESSAGES)
def test_broken_framing(server, sent):
    """A frame that cannot be trusted ends the connection, with a fatal error where one can be sent."""
    with Wire(server) as wire:
        wire.send(sent)
        wire.end()
        found = wire.closed()
        assert "Z" not in kinds(found)
        for one in found:
            if one.kind == "E":
                assert one.fields["S"] in ("FATAL", "ERROR") and one.fields["C"][:2] in ("08", "54", "22", "53")


BODIES = {
    "query-without-terminator": message("Q", b"SELECT 1"),
    "query-text-after-terminator": message("Q", b"SELECT 1\0rest"),
    "empty-query-body": message("Q"),
    "parse-empty": message("P"),
    "parse-no-types": message("P", text("") + text("SELECT 1")),
    "parse-many-types": message("P", text("") + text("SELECT 1") + struct.pack("!h", 32000)),
    "parse-negative-types": message("P", text("") + text("SELECT 1") + struct.pack("!h", -1)),
    "parse-trailing": message("P", text("") + text("SELECT 1") + struct.pack("!h", 0) + b"more"),
    "bind-empty": message("B"),
    "bind-counts": message("B", text("") + text("") + struct.pack("!hh", 0, 30000)),
    "bind-value-length": message("B", text("") + text("") + struct.pack("!hhi", 0, 1, 0x7FFFFFFF)),
    "bind-value-negative": message("B", text("") + text("") + struct.pack("!hhih", 0, 1, -2, 0)),
    "bind-trailing": bind()[:1] + struct.pack("!i", len(bind()) + 3) + bind()[5:] + b"more",
    "describe-unknown": message("D", b"Q\0"),
    "describe-empty": message("D"),
    "close-unknown": message("C", b"Q\0"),
    "execute-short": message("E", b"\0\0"),
    "execute-trailing": message("E", b"\0" + struct.pack("!i", 0) + b"x"),
    "invalid-utf8-name": message("P", b"\xff\xff\0" + text("SELECT 1") + struct.pack("!h", 0)),
    "invalid-utf8-query": message("P", b"\0SELECT '\xc3\x28'\0" + struct.pack("!h", 0)),
    "copy-data-outside": message("d", b"1\t2\n"),
    "password-outside": message("p", text("secret")),
}


@pytest.mark.parametrize("sent", BODIES.values(), ids=BODIES)
def test_broken_bodies(server, sent):
    """A right frame around a wrong body: an error, and the connection goes on (or ends, where PostgreSQL ends it)."""
    with Wire(server) as wire:
        wire.send(sent, SYNC)
        try:
            found = wire.until_ready()
        except (EOFError, ConnectionResetError):
            return
        if found[-1].kind == "Z":
            if "E" not in kinds(found):
                return
            if found[-1].kind == "Z" and sent[:1] == b"Q":
                # A simple query answers for itself; the Sync's answer is still to come.
                wire.until_ready()
            assert rows(wire.simple("SELECT 1")) == [[b"1"]]


def test_invalid_utf8_in_statements_and_values(server):
    with Wire(server) as wire:
        assert error(wire.ask(message("Q", b"SELECT '\xff'\0")))["C"] == "22021"
        assert error(wire.ask(message("Q", b"SELECT '\xed\xa0\x80'\0")))["C"] == "22021"
        assert error(wire.ask(message("Q", b"SELECT 'cut \xe2\x98\0")))["C"] == "22021"
        wire.send(query("COPY abuse FROM STDIN"))
        wire.until("G")
        assert error(wire.send(message("d", b"5\t\xff\n"), message("c")).until_ready())["C"] == "22021"
        found = wire.ask(parse("SELECT $1::text"), bind([b"a\0b"]), execute(), SYNC)
        assert error(found)["C"] == "22021"
        assert rows(wire.simple("SELECT 1")) == [[b"1"]]


def test_statement_that_is_absurdly_nested_or_long(server):
    """Depth is an error, never a stack overflow; length is only slow."""
    with Wire(server) as wire:
        for sql in [
            "SELECT " + "(" * 50_000 + "1" + ")" * 50_000,
            "SELECT " + "1 + " * 100_000 + "1",
            "SELECT " + "- " * 50_000 + "1",
            "SELECT " + "NOT " * 50_000 + "true",
            "SELECT " + "CASE WHEN true THEN " * 20_000 + "1" + " END" * 20_000,
            "SELECT * FROM " + "(SELECT * FROM " * 20_000 + "abuse" + ") x" * 20_000,
        ]:
            found = wire.simple(sql)
            if "E" in kinds(found):
                assert error(found)["C"] in ("54001", "54000", "42601", "0A000", "53200"), error(found)
        assert rows(wire.simple("SELECT length('" + "x" * 3_000_000 + "')")) == [[b"3000000"]]
        found = wire.simple("SELECT id FROM abuse WHERE id IN (" + ",".join(map(str, range(20_000))) + ")")
        assert rows(found) == [[b"1"]]
        assert rows(wire.simple("SELECT 1")) == [[b"1"]]


def test_too_many_columns_and_parameters(server):
    with Wire(server) as wire:
        found = wire.simple("CREATE TABLE abuse_wide (" + ", ".join(f"c{i} int" for i in range(2000)) + ")")
        assert error(found)["C"] == "54011"
        found = wire.simple("SELECT " + ", ".join("1" for _ in range(2000)))
        assert error(found)["C"] == "54011"
        found = wire.ask(parse("SELECT $70000::int"), SYNC)
        assert "E" in kinds(found)
        found = wire.ask(parse("SELECT $0"), SYNC)
        assert error(found)["C"] in ("42P02", "42601")


def test_bytes_arrive_one_by_one(server):
    with Wire(server, start=False) as wire:
        for byte in startup() + query("SELECT 'slowly'"):
            wire.send(bytes([byte]))
        assert kinds(wire.until_ready())[-1] == "Z"
        assert rows(wire.until_ready()) == [[b"slowly"]]


def test_half_open_connections(server):
    """Connections that say nothing, or half of something, hold nobody up."""
    idle = [Wire(server, start=False) for _ in range(50)]
    for count, wire in enumerate(idle):
        wire.send(startup()[: count % len(startup())])
    with Wire(server) as wire:
        assert rows(wire.simple("SELECT 1")) == [[b"1"]]
    for wire in idle:
        wire.socket.close()


def abort(wire: Wire) -> None:
    """Ends the connection with a reset, as a dying machine's client would."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.socket.close()


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("moment", ["copy", "copy-mid-row", "transaction", "mid-message", "portal", "waiting"])
def test_client_dies(server, moment, end):
    """Locks and half-done work of a dead client go away (the fixture updates the same row afterwards)."""
    wire = Wire(server)
    wire.simple("BEGIN")
    wire.simple("UPDATE abuse SET v = 'dying' WHERE id = 1")
    if moment.startswith("copy"):
        wire.send(query("COPY abuse FROM STDIN"))
        wire.until("G")
        wire.send(message("d", b"2\ttwo\n3\tthree\n"))
        if moment == "copy-mid-row":
            wire.send(message("d", b"4\tfo")[:-1])
    elif moment == "mid-message":
        wire.send(query("INSERT INTO abuse VALUES (2, 'two')")[:-3])
    elif moment == "portal":
        wire.send(parse("SELECT generate_series(1, 100000)"), bind(), execute("", 10), b"H\0\0\0\4")
        wire.until("s")
    elif moment == "waiting":
        other = Wire(server)
        other.simple("BEGIN")
        other.simple("INSERT INTO abuse VALUES (7, 'other')")
        wire.send(query("INSERT INTO abuse VALUES (7, 'mine')"))
        time.sleep(0.2)
    if end == "reset":
        abort(wire)
    else:
        wire.socket.close()
    if moment == "waiting":
        other.simple("COMMIT")
        other.socket.close()
        server.execute("DELETE FROM abuse WHERE id = 7")

    def only_the_first():
        with server.connect(autocommit=True) as connection:
            connection.execute("SET lock_timeout = '200ms'")
            try:
                connection.execute("UPDATE abuse SET v = 'free' WHERE id = 1")
            except psycopg.errors.LockNotAvailable:
                return False
            return connection.execute("SELECT id, v FROM abuse").fetchall() == [(1, "free")]

    wait_until(only_the_first, what="the dead client's work is undone")


def test_client_that_does_not_read(server):
    """A client that asks for much and reads nothing stops only itself."""
    server.execute("INSERT INTO abuse SELECT g, repeat('x', 1000) FROM generate_series(2, 2000) AS g")
    wire = Wire(server)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.send(*[query("SELECT * FROM abuse")] * 20)
    with Wire(server) as other:
        for _ in range(100):
            assert rows(other.simple("SELECT 1")) == [[b"1"]]
    abort(wire)
    server.execute("DELETE FROM abuse WHERE id > 1")


def cancel(server, process: int, secret: int) -> bytes:
    """Sends a cancel request; the server answers nothing and closes."""
    with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(struct.pack("!iiii", 16, CANCEL, process, secret))
        return connection.recv(100)


def test_cancel_request(server):
    """Cancels a statement that waits for a lock, and one that computes; a wrong secret does nothing."""
    with Wire(server) as holder, Wire(server) as waiter:
        holder.simple("BEGIN")
        holder.simple("UPDATE abuse SET v = 'held' WHERE id = 1")
        waiter.simple("BEGIN")
        waiter.send(query("UPDATE abuse SET v = 'mine' WHERE id = 1"))
        time.sleep(0.2)
        assert cancel(server, waiter.process, waiter.secret ^ 1) == b""
        waiter.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiter.receive()
        waiter.socket.settimeout(TIMEOUT_S)
        assert cancel(server, waiter.process, waiter.secret) == b""
        found = waiter.until_ready()
        assert (error(found)["C"], error(found)["M"]) == ("57014", "canceling statement due to user request")
        assert found[-1].payload == b"E"
        waiter.simple("ROLLBACK")
        holder.simple("ROLLBACK")
        # A long computation.
        waiter.send(query("SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, generate_series(1, 3000) c"))
        time.sleep(0.2)
        cancel(server, waiter.process, waiter.secret)
        assert error(waiter.until_ready())["C"] == "57014"
        # An idle session is not disturbed.
        cancel(server, waiter.process, waiter.secret)
        time.sleep(0.1)
        assert rows(waiter.simple("SELECT 1")) == [[b"1"]]


def test_cancel_storm(server):
    """Cancels at random moments: each statement either ends well or with 57014, and the session stays in step."""
    with Wire(server) as wire:
        stop = threading.Event()

        def canceller():
            while not stop.is_set():
                cancel(server, wire.process, wire.secret)

        thread = threading.Thread(target=canceller)
        thread.start()
        try:
            for count in range(300):
                found = wire.simple(f"SELECT {count} FROM abuse")
                if "E" in kinds(found):
                    assert error(found)["C"] == "57014"
                else:
                    assert rows(found) == [[str(count).encode()]]
        finally:
            stop.set()
            thread.join()


@pytest.mark.slow
def test_random_mutations(server, seed):
    """Valid conversations with bytes flipped, cut, doubled or put in: never a dead server."""
    rng = random.Random(seed)
    conversation = [
        query("SELECT id, v FROM abuse WHERE id = 1"),
        parse("SELECT $1::int + id FROM abuse WHERE v = $2", "s"),
        bind([b"1", b"x"], "p", "s"),
        describe("S", "s"),
        describe("P", "p"),
        execute("p", 1),
        SYNC,
        query("COPY abuse FROM STDIN"),
        message("d", b"9\tnine\n"),
        message("c"),
        query("DELETE FROM abuse WHERE id = 9"),
    ]
    for _ in range(300):
        data = bytearray(b"".join(conversation))
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] ^= 1 << rng.randrange(8)
                case 1:
                    del data[at : at + rng.randrange(1, 9)]
                case 2:
                    data[at:at] = rng.randbytes(rng.randrange(1, 9))
                case 3:
                    data[at:at] = data[at : at + rng.randrange(1, 40)]
        with Wire(server) as wire:
            try:
                wire.send(bytes(data))
                wire.end()
                while wire.socket.recv(65536):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass
    server.execute("DELETE FROM abuse WHERE id <> 1")
    # A flipped bit may have made the DELETE lose its condition.
    server.execute("INSERT INTO abuse VALUES (1, 'x') ON CONFLICT DO NOTHING")


@pytest.mark.slow
@pytest.mark.logstead_only
def test_five_thousand_connections(server):
    """5,000 sessions open at once, all of them usable."""
    count = 5000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 500:
        if hard < count + 500:
            pytest.skip(f"only {hard} open files are allowed here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 500, hard))
    wires = []
    try:
        for _ in range(count):
            wires.append(Wire(server))
        for number, wire in enumerate(wires):
            wire.send(query(f"SELECT {number}"))
        for number, wire in enumerate(wires):
            assert rows(wire.until_ready()) == [[str(number).encode()]]
    finally:
        for wire in wires:
            wire.socket.close()
    wait_until(lambda: server.execute("SELECT 1") == [(1,)], what="a new connection after the many")

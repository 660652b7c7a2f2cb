"""COPY stops nobody else: on a server with one worker, others are answered while it reads, checks and writes, and it ends when it is told to."""

from __future__ import annotations

import select
import socket
import struct
import threading

import pytest
from harness import TIMEOUT_S
from rawwire import Wire, message, query

pytestmark = pytest.mark.logstead_only

#: Bytes of a line whose every byte means something.
LINE_BYTES = 24 << 20
#: The others are answered so often at least before the COPY ends.
ANSWERS = 20

WIDE_COLUMNS = 1500
SLOW_ROWS = b"".join(b"%d\tx\n" % number for number in range(20000))


def binary_rows(count: int) -> bytes:
    row = struct.pack("!hiiii", 2, 4, 7, 1, 0)[:-4] + b"x"
    return b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0) + row * count


#: Statements and the input that they are given again and again.
FROM = {
    "escapes": ("COPY long FROM STDIN WHERE false", b"\\t" * (LINE_BYTES // 2) + b"\n"),
    "plain": ("COPY long FROM STDIN WHERE false", b"x" * LINE_BYTES + b"\n"),
    "no ascii": ("COPY long FROM STDIN WHERE false", "ä".encode() * (LINE_BYTES // 2) + b"\n"),
    "csv": ("COPY long FROM STDIN (FORMAT csv) WHERE false", b'"' + b'""' * (LINE_BYTES // 2) + b'"\n'),
    "numbers": ("COPY wide FROM STDIN WHERE false", b"\t".join([b"7" * 3000] * WIDE_COLUMNS) + b"\n"),
    "where": ("COPY plain FROM STDIN WHERE length(md5(repeat(t, 40000))) < 0", SLOW_ROWS),
    "default": ("COPY defaulted (id, t) FROM STDIN", SLOW_ROWS),
    "constraint": ("COPY checked FROM STDIN", SLOW_ROWS),
    "rows": ("COPY plain FROM STDIN WHERE false", SLOW_ROWS * 20),
    "encoded": ("COPY plain FROM STDIN (ENCODING latin1) WHERE false", SLOW_ROWS * 20),
}
BINARY = {
    "binary": ("COPY checked FROM STDIN (FORMAT binary)", binary_rows(200_000)),
    "binary where": ("COPY plain FROM STDIN (FORMAT binary) WHERE length(md5(repeat(t, 40000))) < 0", binary_rows(200_000)),
}
TO = {
    "escapes": "COPY (SELECT s FROM (SELECT repeat(E'\\t', 20000000) s OFFSET 0) x, generate_series(1, 1000)) TO STDOUT",
    "csv": "COPY (SELECT s FROM (SELECT repeat('\"', 20000000) s OFFSET 0) x, generate_series(1, 1000)) TO STDOUT (FORMAT csv)",
    "plain csv": "COPY (SELECT s FROM (SELECT repeat('x', 40000000) s OFFSET 0) x, generate_series(1, 1000)) TO STDOUT (FORMAT csv)",
    "binary": "COPY (SELECT s FROM (SELECT repeat('x', 40000000) s OFFSET 0) x, generate_series(1, 1000)) TO STDOUT (FORMAT binary)",
    "encoded": """
        COPY (SELECT s FROM (SELECT repeat('ä', 20000000) s OFFSET 0) x, generate_series(1, 1000)) TO STDOUT (ENCODING latin1)""",
}
COPIES = {
    **{f"from, {name}": statement for name, statement in {**FROM, **BINARY}.items()},
    **{f"to, {name}": (statement, None) for name, statement in TO.items()},
}


@pytest.fixture(scope="module")
def one_worker(server_kind, tmp_path_factory):
    """A server with one worker and tables to copy into."""
    server = server_kind(tmp_path_factory.mktemp("one_worker"))
    server.start(("--workers", "1"))
    columns = ", ".join(f"c{number} numeric" for number in range(WIDE_COLUMNS))
    server.execute(
        "CREATE TABLE long (t text)",
        f"CREATE TABLE wide ({columns})",
        "CREATE TABLE plain (id int, t text)",
        "CREATE TABLE defaulted (id int, t text, slow text DEFAULT md5(repeat(random()::text, 20000)))",
        "CREATE TABLE checked (id int, t text CHECK (length(md5(repeat(t, 100000))) > 0))",
    )
    yield server
    server.kill()


class Copying:
    """A session that copies in a thread of its own, until the server has enough."""

    def __init__(self, server, statement: str, data: bytes | None, timeout_ms: int):
        self.wire = Wire(server)
        self.wire.simple(f"SET statement_timeout = {timeout_ms}")
        self.error: dict[str, str] | None = None
        self.wire.send(query(statement))
        if data is not None:
            assert self.wire.receive().kind == "G"
        self.thread = threading.Thread(target=self._run, args=(data,))
        self.thread.start()

    def _run(self, data: bytes | None) -> None:
        if data is not None:
            self._send(data)
        for received in self.wire.until("Z"):
            if received.kind == "E":
                self.error = received.fields

    def _send(self, data: bytes) -> None:
        """One message after the other, as long as nothing comes back, and the last one whole."""
        told = False
        while not told:
            rest = memoryview(message("d", data))
            if data.startswith(b"PGCOPY"):
                data = data[19:]
            while len(rest):
                readable, writable, _ = select.select([] if told else [self.wire.socket], [self.wire.socket], [], TIMEOUT_S)
                assert readable or writable, "the server neither reads nor answers"
                told = told or bool(readable)
                if writable:
                    rest = rest[self.wire.socket.send(rest[: 1 << 20], socket.MSG_DONTWAIT) :]

    def runs(self) -> bool:
        return self.thread.is_alive()

    def ended(self) -> dict[str, str] | None:
        """Waits for its end, and says what it ended with. The session goes on."""
        self.thread.join(TIMEOUT_S)
        assert not self.runs(), "the COPY did not end"
        assert [row.kind for row in self.wire.simple("SELECT 1") if row.kind == "D"] == ["D"]
        self.wire.socket.close()
        return self.error


@pytest.mark.parametrize("name", COPIES)
def test_a_time_limit_ends_it_and_others_are_answered_meanwhile(one_worker, name):
    with one_worker.connect(autocommit=True) as other:
        copying = Copying(one_worker, *COPIES[name], 1500)
        answers = 0
        while copying.runs() and copying.error is None:
            other.execute("SELECT 1")
            answers += 1
        error = copying.ended()
        assert error and error["C"] == "57014" and "statement timeout" in error["M"], error
        assert answers >= ANSWERS
        held = other.execute("SELECT held, longest_ms, last_query FROM logstead_workers").fetchall()
        print(name, answers, held)


@pytest.mark.parametrize("name", COPIES)
def test_a_session_of_the_same_worker_ends_it(one_worker, name):
    with one_worker.connect(autocommit=True) as other:
        copying = Copying(one_worker, *COPIES[name], 0)
        for _ in range(ANSWERS):
            other.execute("SELECT pg_sleep(0.01)")
        assert copying.runs()
        assert other.execute("SELECT pg_cancel_backend(%s)", (copying.wire.process,)).fetchone() == (True,)
        error = copying.ended()
        assert error and error["C"] == "57014" and "user request" in error["M"], error

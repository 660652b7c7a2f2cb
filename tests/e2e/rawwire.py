"""The PostgreSQL protocol by hand, to send what no client library would."""

from __future__ import annotations

import errno
import socket
import struct
from dataclasses import dataclass

from harness import TIMEOUT_S, Server

PROTOCOL_3 = 196608
CANCEL = 80877102
SSL_REQUEST = 80877103
GSSENC_REQUEST = 80877104


def message(kind: str, payload: bytes = b"") -> bytes:
    """A message with its right length."""
    return kind.encode() + struct.pack("!i", len(payload) + 4) + payload


def text(value: str) -> bytes:
    """A zero-terminated string."""
    return value.encode() + b"\0"


def startup(**parameters: str) -> bytes:
    """A startup packet."""
    parameters = {"user": "postgres", "database": "postgres", **parameters}
    body = struct.pack("!i", PROTOCOL_3) + b"".join(text(key) + text(value) for key, value in parameters.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    """A simple query."""
    return message("Q", text(sql))


def parse(sql: str, name: str = "", types: tuple[int, ...] = ()) -> bytes:
    """Parse."""
    return message("P", text(name) + text(sql) + struct.pack(f"!h{len(types)}I", len(types), *types))


def bind(values=(), portal: str = "", statement: str = "", formats=(), results=()) -> bytes:
    """Bind; values are bytes or None."""
    body = text(portal) + text(statement)
    body += struct.pack(f"!h{len(formats)}h", len(formats), *formats) + struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("B", body + struct.pack(f"!h{len(results)}h", len(results), *results))


def describe(kind: str, name: str = "") -> bytes:
    """Describe a statement (S) or a portal (P)."""
    return message("D", kind.encode() + text(name))


def execute(portal: str = "", rows: int = 0) -> bytes:
    """Execute, with a row limit."""
    return message("E", text(portal) + struct.pack("!i", rows))


def close(kind: str, name: str = "") -> bytes:
    """Close a statement (S) or a portal (P)."""
    return message("C", kind.encode() + text(name))


SYNC = message("S")
FLUSH = message("H")
TERMINATE = message("X")


@dataclass
class Message:
    """A message from the server."""

    kind: str
    payload: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an ErrorResponse or NoticeResponse."""
        parts = [part for part in self.payload.split(b"\0") if part]
        return {part[:1].decode(): part[1:].decode("utf-8", "replace") for part in parts}

    @property
    def row(self) -> list[bytes | None]:
        """The values of a DataRow."""
        count, values, at = struct.unpack_from("!h", self.payload)[0], [], 2
        for _ in range(count):
            (length,) = struct.unpack_from("!i", self.payload, at)
            at += 4
            values.append(None if length < 0 else self.payload[at : at + length])
            at += max(length, 0)
        return values

    @property
    def columns(self) -> list[tuple[str, int, int, int]]:
        """Name, type, type modifier and format of each column of a RowDescription."""
        count, found, at = struct.unpack_from("!h", self.payload)[0], [], 2
        for _ in range(count):
            end = self.payload.index(b"\0", at)
            _, _, oid, _, modifier, fmt = struct.unpack_from("!ihIhih", self.payload, end + 1)
            found.append((self.payload[at:end].decode(), oid, modifier, fmt))
            at = end + 19
        return found


class Wire:
    """A connection on the level of bytes."""

    def __init__(self, server: Server, start: bool = True, **parameters: str):
        self.socket = socket.create_connection((server.host, server.port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.parameters: dict[str, str] = {}
        self.process = self.secret = 0
        if start:
            self.begin(**parameters)

    def begin(self, **parameters: str) -> None:
        """Sends what begins a session, and reads until the server is ready."""
        self.send(startup(**parameters))
        for received in self.until_ready():
            if received.kind == "S":
                key, value = received.payload.split(b"\0")[:2]
                self.parameters[key.decode()] = value.decode()
            elif received.kind == "K":
                self.process, self.secret = struct.unpack("!ii", received.payload[:8])
            elif received.kind == "E":
                raise ConnectionError(received.fields)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *messages: bytes) -> "Wire":
        """Sends bytes as they are."""
        self.socket.sendall(b"".join(messages))
        return self

    def exactly(self, count: int) -> bytes:
        """Reads `count` bytes; EOFError if the server closes the connection before."""
        while len(self.buffer) < count:
            got = self.socket.recv(65536)
            if not got:
                raise EOFError(self.buffer)
            self.buffer += got
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def receive(self) -> Message:
        """One message."""
        kind, length = struct.unpack("!ci", self.exactly(5))
        return Message(kind.decode(), self.exactly(length - 4))

    def until(self, *kinds: str) -> list[Message]:
        """Messages up to and including the first of one of these kinds."""
        found = [self.receive()]
        while found[-1].kind not in kinds:
            found.append(self.receive())
        return found

    def until_ready(self) -> list[Message]:
        """Messages up to ReadyForQuery; at a fatal error the connection's end counts too."""
        found = []
        while True:
            try:
                found.append(self.receive())
            except (EOFError, ConnectionResetError):
                if found and found[-1].kind == "E":
                    return found
                raise
            if found[-1].kind == "Z":
                return found

    def ask(self, *messages: bytes) -> list[Message]:
        """Sends, and receives up to ReadyForQuery."""
        return self.send(*messages).until_ready()

    def simple(self, sql: str) -> list[Message]:
        """A simple query's messages."""
        return self.ask(query(sql))

    def end(self) -> None:
        """Says that nothing more is sent; the server may have gone before."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise

    def closed(self) -> list[Message]:
        """Reads to the end of the connection, which must come; the messages before it."""
        found = []
        try:
            while True:
                found.append(self.receive())
        except (EOFError, ConnectionResetError):
            return found


def kinds(messages: list[Message]) -> str:
    """The kinds of messages as one word, without ParameterStatus and notices."""
    return "".join(message.kind for message in messages if message.kind not in "SN")


def error(messages: list[Message]) -> dict[str, str]:
    """The fields of the only error among them."""
    found = [message.fields for message in messages if message.kind == "E"]
    assert len(found) == 1, kinds(messages)
    return found[0]


def rows(messages: list[Message]) -> list[list[bytes | None]]:
    """The rows among them."""
    return [message.row for message in messages if message.kind == "D"]

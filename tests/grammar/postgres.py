"""What PostgreSQL's grammar says of a text, without running any of it.

A whole message is parsed before any of it runs. So a statement is followed by one that no grammar takes: when PostgreSQL complains of that one, it has accepted the
statement; when it complains of something else, its lexer or its grammar has refused it. Nothing is ever executed, and nothing has to exist.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

# Behind a statement: no statement begins so.
SENTINEL = "\n;]"


@dataclass(frozen=True)
class Answer:
    """An error: SQLSTATE, position in characters from 1 (none if there is none) and message."""

    code: str
    position: int | None
    message: str


class Connection:
    """A connection over PostgreSQL's protocol, which trusts its client."""

    def __init__(self, path: str, user: str = "postgres", database: str = "postgres"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        body = struct.pack("!i", 196608) + b"".join(
            f"{name}\0{value}\0".encode() for name, value in (("user", user), ("database", database), ("client_encoding", "UTF8"))
        )
        self.file = self.socket.makefile("rb")
        self._send(b"", body + b"\0")
        self._until_ready()

    def _send(self, kind: bytes, body: bytes) -> None:
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def _until_ready(self) -> Answer | None:
        error = None
        while True:
            kind = self.file.read(1)
            (length,) = struct.unpack("!i", self.file.read(4))
            body = self.file.read(length - 4)
            if kind == b"Z":
                return error
            if kind == b"E":
                fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                position = fields.get(b"P")
                error = Answer(fields[b"C"], int(position) if position else None, fields[b"M"])
                if fields[b"V"] == "FATAL":
                    raise RuntimeError(error.message)

    def judge(self, sql: str) -> Answer:
        """The error that the text gives with the sentinel behind it."""
        self._send(b"Q", (sql + SENTINEL).encode() + b"\0")
        answer = self._until_ready()
        if answer is None:
            raise RuntimeError(f"PostgreSQL has run this: {sql!r}")
        return answer

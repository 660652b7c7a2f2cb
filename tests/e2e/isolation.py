"""Runs interleavings of two or three sessions (tests/sql/isolation/*.spec) and prints them as text.

A script's lines:

    -- a comment, printed as it is
    a> SQL         session a runs it; the answer is printed below
    b& SQL         session b runs it and has to wait for another session
    b! SQL         session b runs it; what comes of it is told by a later line (it closes a deadlock)
    wait b         the answer to what b waited for
    close a        session a goes away in the midst of its transaction
    deadlock a b   both wait for each other: exactly one of them fails with 40P01; both are rolled back

Whether `b&` really waits is seen by giving it a moment: a server that blocks as it should always passes, however slow
the machine; only a server that wrongly does not block could slip through on a slow one.
"""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path

import psycopg

from harness import REPOSITORY, TIMEOUT_S, Server

SCRIPTS = REPOSITORY / "tests/sql/isolation"
A_MOMENT_S = 0.3
LINE = re.compile(r"^(?:(--.*)|(\w+)([>&!]) *(.+)|(wait|close) +(\w+)|(deadlock) +(\w+) +(\w+))$")


def scripts() -> list[Path]:
    """All interleavings."""
    return sorted(SCRIPTS.glob("*.spec"))


def expected(script: Path) -> Path:
    """Where the expected transcript is kept."""
    return script.parent / "expected" / f"{script.stem}.out"


class Session:
    """One connection with a thread of its own."""

    def __init__(self, server: Server):
        self.connection = server.connect(autocommit=True)
        self.thread = ThreadPoolExecutor(max_workers=1)
        self.outstanding: Future[str] | None = None

    def launch(self, statement: str) -> "Future[str]":
        """Starts a statement."""
        self.outstanding = self.thread.submit(self._answer, statement)
        return self.outstanding

    def answer(self) -> str:
        """The answer to the statement that was started."""
        assert self.outstanding, "nothing to wait for"
        outstanding, self.outstanding = self.outstanding, None
        try:
            return outstanding.result(TIMEOUT_S)
        except FutureTimeout:
            return f"  still waiting after {TIMEOUT_S:.0f} s\n"

    def _answer(self, statement: str) -> str:
        try:
            cursor = self.connection.execute(statement)
        except psycopg.Error as error:
            if error.sqlstate is None:
                return f"  connection lost: {error}\n"
            return f"  ERROR {error.sqlstate}: {error.diag.message_primary}\n"
        if cursor.description is None:
            return f"  {cursor.statusmessage}\n"
        rows = ["  " + " | ".join("NULL" if value is None else str(value) for value in row) for row in cursor]
        return "\n".join([*rows, f"  ({len(rows)} rows)"]) + "\n"

    def close(self) -> None:
        """Ends the session, and with it whatever it still waits for."""
        if self.outstanding:
            self.connection.cancel_safe(timeout=TIMEOUT_S)
        self.thread.shutdown(wait=True)
        self.connection.close()


def run(server: Server, script: Path) -> str:
    """The transcript of an interleaving."""
    sessions: dict[str, Session] = {}
    printed: list[str] = []

    def session(name: str) -> Session:
        if name not in sessions:
            sessions[name] = Session(server)
        return sessions[name]

    try:
        for line in script.read_text().splitlines():
            if not line.strip():
                continue
            found = LINE.match(line)
            assert found, f"{script.name}: {line}"
            comment, name, kind, statement, wait, waiter, deadlock, first, second = found.groups()
            printed.append(line + "\n")
            if statement:
                running = session(name).launch(statement)
                if kind == "&":
                    try:
                        running.result(A_MOMENT_S)
                        printed.append("  does not wait\n")
                    except FutureTimeout:
                        printed.append("  waits\n")
                elif kind == ">":
                    printed.append(session(name).answer())
            elif wait == "close":
                sessions.pop(waiter).close()
            elif wait:
                printed.append(session(waiter).answer())
            elif deadlock:
                answers = [session(first).answer(), session(second).answer()]
                victims = [answer for answer in answers if "40P01" in answer]
                printed.append("".join(victims) + f"  {len(victims)} of 2 failed\n")
                for name in (first, second):
                    session(name).launch("ROLLBACK")
                    session(name).answer()
    finally:
        for one in sessions.values():
            one.close()
    return "".join(printed)

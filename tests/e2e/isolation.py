"""Runs interleavings of some sessions (tests/sql/isolation/*.spec) and prints them as text.

A script's lines:

    -- a comment, printed as it is
    a> SQL         session a runs it; the answer is printed below
    b& SQL         session b runs it and has to wait for another session
    b! SQL         session b runs it; what comes of it is told by a later line (it closes a deadlock)
    wait b         the answer to what b waited for
    close a        session a goes away in the midst of its transaction
    deadlock a b   these wait for each other: exactly one of them fails with 40P01; all are rolled back
    levels L, M    what follows is run once for each of these isolation levels; {level} stands for its name
    together       until `apart` statements run but their answers are not printed: which transaction of a cycle fails, and
                   at which statement, is the server's choice. Only failures with 40001 and 40P01 are allowed.
    apart          prints whether all went well or some had to fail
    one of SQL => X || Y
                   session c runs SQL; its rows, joined by commas, are one of these

Whether `b&` really waits is seen by giving it a moment: a server that blocks as it should always passes, however slow
the machine; only a server that wrongly does not block could slip through on a slow one.
"""

from __future__ import annotations

import re
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for
from pathlib import Path

import psycopg

from harness import REPOSITORY, TIMEOUT_S, Server

SCRIPTS = REPOSITORY / "tests/sql/isolation"
A_MOMENT_S = 0.3
LINE = re.compile(
    r"^(?:(?P<comment>--.*)|(?P<name>\w+)(?P<kind>[>&!]) *(?P<statement>.+)|(?P<wait>wait|close) +(?P<waiter>\w+)"
    r"|deadlock +(?P<deadlock>\w+(?: +\w+)+)|(?P<bracket>together|apart)|one of +(?P<query>.+?) +=> +(?P<results>.+))$"
)
LEVELS = re.compile(r"^levels +(.+)$")
RETRY = re.compile(r"^  ERROR (?:40001|40P01|25P02):")


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


def lines(script: Path) -> list[str]:
    """The lines of a script, those below `levels` once for each level."""
    plain: list[str] = []
    source = [line for line in script.read_text().splitlines() if line.strip()]
    for at, line in enumerate(source):
        if levels := LEVELS.match(line):
            for level in levels[1].split(", "):
                plain.append(f"-- {level.upper()}")
                plain.extend(rest.replace("{level}", level) for rest in source[at + 1 :])
            break
        plain.append(line)
    return plain


class Run:
    """An interleaving being run."""

    def __init__(self, server: Server):
        self.server = server
        self.sessions: dict[str, Session] = {}
        self.printed: list[str] = []
        # Answers since `together`.
        self.together: list[str] | None = None

    def session(self, name: str) -> Session:
        """The session with this name, connected when first used."""
        if name not in self.sessions:
            self.sessions[name] = Session(self.server)
        return self.sessions[name]

    def tell(self, answer: str) -> None:
        """Prints an answer, or keeps it for `apart`."""
        if self.together is None:
            self.printed.append(answer)
        else:
            self.together.append(answer)

    def step(self, line: str) -> None:
        """Runs one line."""
        found = LINE.match(line)
        assert found, line
        self.printed.append(line + "\n")
        if found["statement"]:
            self.launch(found["name"], found["kind"], found["statement"])
        elif found["wait"] == "close":
            self.sessions.pop(found["waiter"]).close()
        elif found["wait"]:
            if self.session(found["waiter"]).outstanding:
                self.tell(self.session(found["waiter"]).answer())
        elif found["deadlock"]:
            self.deadlock(found["deadlock"].split())
        elif found["bracket"]:
            self.bracket(found["bracket"])
        elif found["query"]:
            self.one_of(found["query"], found["results"].split(" || "))

    def launch(self, name: str, kind: str, statement: str) -> None:
        """Starts a statement and, unless it is to wait, prints its answer."""
        if self.together is not None and self.session(name).outstanding:
            self.tell(self.session(name).answer())
        running = self.session(name).launch(statement)
        if kind == "&":
            try:
                running.result(A_MOMENT_S)
                self.tell("  does not wait\n")
            except FutureTimeout:
                self.tell("  waits\n")
        elif kind == ">":
            self.tell(self.session(name).answer())

    def deadlock(self, names: list[str]) -> None:
        """Exactly one of the sessions is a victim; all are rolled back."""
        victims = []
        # Who waits for another one's row gets it when that one is rolled back.
        while waiting := [name for name in names if self.session(name).outstanding]:
            done, _ = wait_for([self.session(name).outstanding for name in waiting], TIMEOUT_S, FIRST_COMPLETED)
            assert done, f"{names} wait for ever"
            for name in waiting:
                if self.session(name).outstanding in done:
                    answer = self.session(name).answer()
                    victims += [answer] if "40P01" in answer else []
                    self.session(name).launch("ROLLBACK")
                    self.session(name).answer()
        self.printed.append("".join(victims) + f"  {len(victims)} of {len(names)} failed\n")

    def bracket(self, bracket: str) -> None:
        """Begins or ends a stretch whose answers are not printed."""
        if bracket == "together":
            self.together = []
            return
        for session in self.sessions.values():
            if session.outstanding:
                self.tell(session.answer())
        answers, self.together = self.together or [], None
        errors = [answer for answer in answers if answer.startswith("  ERROR")]
        self.printed += [answer for answer in answers if "waiting after" in answer or "connection lost" in answer]
        self.printed += [answer for answer in errors if not RETRY.match(answer)]
        self.printed.append("  some had to fail\n" if errors else "  all went well\n")

    def one_of(self, query: str, results: list[str]) -> None:
        """Checks that a query gives one of some results."""
        session = self.session("c")
        session.launch(query)
        rows = session.answer().splitlines()
        found = ", ".join(row.strip() for row in rows if not re.match(r"^  \(\d+ rows\)$", row))
        self.printed.append("  yes\n" if found in [result.strip() for result in results] else f"  no: {found}\n")


def run(server: Server, script: Path) -> str:
    """The transcript of an interleaving."""
    running = Run(server)
    try:
        for line in lines(script):
            running.step(line)
    finally:
        for one in running.sessions.values():
            one.close()
    return "".join(running.printed)

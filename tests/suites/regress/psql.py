"""Runs one of psql's scripts against a server, and keeps the answer to each statement.

Backslash commands that ask the server something of their own (`\\d` and the like) are passed over: they test psql. Those that steer a script
(`\\set`, `\\gset`, `\\if`, `\\connect`, `\\copy` ...) do what they do in psql.
"""

from __future__ import annotations

import re
import select
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.pq import ExecStatus

from script import Command, Reader

# A statement that takes longer is cancelled.
STATEMENT_S = 30.0
# pg_regress's settings, and those of its database.
SETTINGS = [
    "SET timezone = 'PST8PDT'",
    "SET datestyle = 'Postgres, MDY'",
    "SET intervalstyle = 'postgres_verbose'",
    "SET bytea_output = 'hex'",
    "SET lc_messages = 'C'",
    "SET lc_monetary = 'C'",
    "SET lc_numeric = 'C'",
    "SET lc_time = 'C'",
    "SET timezone_abbreviations = 'Default'",
]
CONNECTION_LOST = "connection lost"


@dataclass
class Answer:
    """A statement and what came of it: for each result columns and rows, command tag, or SQLSTATE and message."""

    line: int
    sql: str
    results: list = field(default_factory=list)


class Session:
    """One run of a script."""

    def __init__(self, server, database: str, folders: dict[str, str], takes_data: set[int] = frozenset()):
        self.server = server
        self.database = database
        self.user = "postgres"
        self.folders = folders
        # The lines of COPY FROM STDIN whose data the other server took: if this one refuses the command, they are no statements all the same.
        self.takes_data = takes_data
        self.took_data = False
        self.answers: list[Answer] = []
        self.notices: list[str] = []
        self.connection = None
        self.dead = False

    def run(self, path: Path) -> list[Answer]:
        """Runs the script at `path`."""
        self.variables = {"DBNAME": self.database, "AUTOCOMMIT": "on", "USER": self.user, "HOST": self.server.host, "PORT": str(self.server.port)}
        self._connect()
        reader = Reader(path.read_text(encoding="utf-8", errors="surrogateescape"), self.variables)
        # One for each \if: whether its branch is taken, and whether one was.
        self.branches: list[list[bool]] = []
        while not self.dead and (what := reader.next()) is not None:
            taken = all(branch[0] for branch in self.branches)
            if isinstance(what, Command):
                if what.name in ("q", "quit") and taken:
                    break
                self._command(reader, what, taken)
            elif taken:
                self._statement(reader, what.line, what.sql, what.ended)
        self._close()
        return self.answers

    def _connect(self) -> None:
        self._close()
        try:
            self.connection = self.server.connect(self.database, autocommit=True) if self.user == "postgres" else psycopg.connect(
                host=self.server.host, port=self.server.port, user=self.user, dbname=self.database, autocommit=True, connect_timeout=30
            )  # fmt: skip
        except psycopg.Error:
            self.dead = not self.server.running()
            self.connection = None
            return
        for setting in SETTINGS:
            self.connection.pgconn.exec_(setting.encode())

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _command(self, reader: Reader, command: Command, taken: bool) -> None:
        name, branches = command.name, self.branches
        if name == "if":
            truth = taken and self._truth(reader, command.arguments)
            branches.append([truth, truth])
        elif name == "elif" and branches:
            truth = not branches[-1][1] and self._truth(reader, command.arguments)
            branches[-1] = [truth, branches[-1][1] or truth]
        elif name == "else" and branches:
            branches[-1] = [not branches[-1][1], True]
        elif name == "endif" and branches:
            branches.pop()
        if not taken or name in ("if", "elif", "else", "endif"):
            return
        arguments = reader.expand(command.arguments)
        if name == "set" and arguments:
            self.variables[arguments[0]] = "".join(arguments[1:])
        elif name == "unset" and arguments:
            self.variables.pop(arguments[0], None)
        elif name == "getenv" and len(arguments) > 1 and arguments[1] in self.folders:
            self.variables[arguments[0]] = self.folders[arguments[1]]
        elif name in ("c", "connect"):
            where = [argument.strip('"') for argument in arguments] + ["-", "-"]
            self.database = self.database if where[0] == "-" else where[0]
            self.user = self.user if where[1] == "-" else where[1]
            self._connect()
            self.answers.append(Answer(command.line, f"\\connect {self.database} {self.user}", [["connected" if self.connection else "refused"]]))
        elif name == "copy":
            self._copy(reader, command)
        elif name in ("g", "gset", "gexec") and self.answers:
            self._statement(reader, command.line, self.answers[-1].sql, f"{name} {command.arguments}".strip())

    def _truth(self, reader: Reader, arguments: str) -> bool:
        words = reader.expand(arguments)
        return bool(words) and words[0].lower() in ("t", "tr", "tru", "true", "yes", "on", "1")

    def _copy(self, reader: Reader, command: Command) -> None:
        """`\\copy` with the script's own lines or with a file."""
        found = re.match(r"(.*?)\s+(from|to)\s+('[^']*'|\S+)(.*)$", command.arguments, re.DOTALL | re.IGNORECASE)
        if not found:
            return
        what, way, where, options = found.groups()
        lines = None
        if way.lower() == "from" and where.lower() not in ("stdin", "pstdin"):
            try:
                lines = Path(where.strip("'")).read_text(errors="surrogateescape").split("\n")[:-1]
            except OSError:
                return
        side = "STDIN" if way.lower() == "from" else "STDOUT"
        self._statement(reader, command.line, f"COPY {what} {way} {side} {options}".strip(), "", lines)

    def _send_file(self, reader: Reader, sql: str) -> None:
        """COPY FROM a file, if the server does not read files: this differs, but what comes next wants the rows."""
        found = re.match(r"(?is)(copy\s.*?\sfrom\s+)'([^']*)'(.*)$", sql)
        if found and Path(found[2]).is_file():
            lines = Path(found[2]).read_text(errors="surrogateescape").split("\n")[:-1]
            self._ask(reader, f"{found[1]}STDIN{found[3]}", lines)

    def _statement(self, reader: Reader, line: int, sql: str, ended: str, lines: list[str] | None = None) -> None:
        if ended.startswith("gdesc"):
            return
        results = self._ask(reader, sql, lines)
        if lines is None and line in self.takes_data and not self.took_data and results and results[-1][0] == "error":
            reader.data()
        self.answers.append(Answer(line, self._text(sql.encode("utf-8", "surrogateescape")), results))
        if results and results[-1][:2] == ["error", "0A000"] and "file on the server" in results[-1][2]:
            self._send_file(reader, sql)
        self._remember(results)
        rows = results[-1] if results and results[-1][0] == "rows" else None
        if rows and ended.startswith("gset"):
            prefix = ended[4:].strip()
            if len(rows[2]) == 1:
                for column, value in zip(rows[1], rows[2][0]):
                    if value is None:
                        self.variables.pop(prefix + column, None)
                    else:
                        self.variables[prefix + column] = value
        elif rows and ended.startswith("gexec"):
            for row in rows[2]:
                for value in row:
                    if value is not None:
                        self._statement(reader, line, value, "")

    def _remember(self, results: list) -> None:
        error = results[-1] if results and results[-1][0] == "error" else None
        self.variables["ERROR"] = "true" if error else "false"
        self.variables["SQLSTATE"] = error[1] if error else "00000"
        if error:
            self.variables["LAST_ERROR_SQLSTATE"], self.variables["LAST_ERROR_MESSAGE"] = error[1], error[2]
        self.variables["ROW_COUNT"] = str(len(results[-1][2])) if results and results[-1][0] == "rows" else "0"

    def _ask(self, reader: Reader, sql: str, lines: list[str] | None) -> list:
        """Sends text, and gives what came back."""
        if self.connection is None:
            self._connect()
            if self.connection is None:
                return [["error", "08006", "there is no connection"]]
        connection = self.connection.pgconn
        results = []
        self.took_data = False
        self.deadline, self.cancelled = time.monotonic() + STATEMENT_S, False
        try:
            if (
                self.variables.get("AUTOCOMMIT") == "off"
                and connection.transaction_status == 0
                and not re.match(r"(?i)\s*(begin|start|commit|rollback|end|abort|vacuum)\b", sql)
            ):
                connection.exec_(b"BEGIN")
            connection.send_query(sql.encode("utf-8", "surrogateescape"))
            while (result := self._next(connection)) is not None:
                if result.status == ExecStatus.COPY_IN:
                    self.took_data = True
                    for line in reader.data() if lines is None else lines:
                        connection.put_copy_data((line + "\n").encode("utf-8", "surrogateescape"))
                        self._flush(connection)
                    connection.put_copy_end()
                elif result.status == ExecStatus.COPY_OUT:
                    results.append(["copy", self._copied(connection)])
                else:
                    results.append(self._result(result))
        except (psycopg.Error, TimeoutError) as error:
            results.append(["error", "08006", f"{CONNECTION_LOST}: {str(error).splitlines()[0]}"])
            self._close()
            self.dead = not self.server.running()
            return results
        if connection.status != 0:
            results.append(["error", "08006", CONNECTION_LOST])
            self._close()
            if not self.server.running():
                self.dead = True
        return results

    def _wait(self, connection) -> None:
        """Waits until the server has said something; cancels a statement that takes too long."""
        if time.monotonic() > self.deadline:
            if self.cancelled:
                raise TimeoutError(f"no answer within {STATEMENT_S:.0f} s, nor after a cancel")
            connection.get_cancel().cancel()
            self.deadline, self.cancelled = time.monotonic() + 10, True
        select.select([connection.socket], [], [], 1)
        connection.consume_input()

    def _flush(self, connection) -> None:
        while connection.flush():
            select.select([connection.socket], [connection.socket], [], 1)
            connection.consume_input()
            if time.monotonic() > self.deadline:
                raise TimeoutError(f"nothing is taken within {STATEMENT_S:.0f} s")

    def _next(self, connection):
        """The next result, if there is one."""
        self._flush(connection)
        while connection.is_busy():
            self._wait(connection)
        return connection.get_result()

    def _copied(self, connection) -> list[str]:
        """The lines of a COPY TO STDOUT."""
        copied = []
        while True:
            size, data = connection.get_copy_data(1)
            if size > 0:
                copied.append(bytes(data).decode("utf-8", "backslashreplace"))
            elif size == 0:
                self._wait(connection)
            else:
                return copied

    def _result(self, result) -> list:
        if result.status == ExecStatus.TUPLES_OK:
            columns = [self._text(result.fname(at)) for at in range(result.nfields)]
            rows = [[self._text(result.get_value(row, at)) for at in range(result.nfields)] for row in range(result.ntuples)]
            return ["rows", columns, rows]
        if result.status in (ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY):
            return ["tag", self._text(result.command_status) if result.status == ExecStatus.COMMAND_OK else ""]
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        message = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY)
        if state is None:
            return ["error", "08006", CONNECTION_LOST]
        return ["error", self._text(state), self._text(message or b"")]

    def _text(self, value: bytes | None) -> str | None:
        """Text, in which the place of the sources has one name."""
        if value is None:
            return None
        text = value.decode("utf-8", "backslashreplace")
        if "/" in text:
            for name, folder in self.folders.items():
                if folder.startswith("/"):
                    text = text.replace(folder, f"[{name}]")
        return text

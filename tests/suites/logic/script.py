"""The scripts of the logic suite: statements, and what PostgreSQL 15 answers to each.

A script is a text of records with an empty line between them:

    statement                   a statement that gives no rows; `statement error 22012`: one that fails with this SQLSTATE
    CREATE TABLE t (a int)

    query a:int4 ?column?:numeric:655366
    SELECT a, a * 1.5 FROM t    names, types and modifiers of the columns (blanks in a name are `\\s`); `rowsort` before them:
    ---- 5f2e01c3               the rows come in any order and are sorted here
    1<tab>1.5

Rows are as COPY writes them: columns with tabs between them, NULL is `\\N`; a line that would be empty is `\\e`. More than 30 rows are told by their
number and a checksum. The number behind the dashes is the checksum of the same rows in binary format, by the extended protocol; `-`
if the statement is not to be run twice.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

ROWS_SHOWN = 30
ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})
# What may not be run twice, or gives something else each time.
ONCE = re.compile(r"\b(insert|update|delete|truncate|merge|nextval|setval|for update|for share)\b|^(fetch|move|show|explain)", re.IGNORECASE)


@dataclass
class Record:
    """A statement with its expectation: the lines above and below it."""

    sql: str
    head: str = ""
    tail: list[str] = field(default_factory=list)
    rowsort: bool = False

    def text(self) -> str:
        return "\n".join([self.head, self.sql, *self.tail]) + "\n"


def read(path: Path) -> list[Record]:
    """The records of a script."""
    records = []
    for block in path.read_text().split("\n\n"):
        # Remarks stand above a record; further down `#` is what a row begins with.
        lines = list(itertools.dropwhile(lambda line: line.startswith("#"), block.strip("\n").split("\n")))
        if not lines or not lines[0]:
            continue
        head, body = lines[0], lines[1:]
        cut = next((number for number, line in enumerate(body) if line.startswith("---- ")), len(body))
        records.append(Record("\n".join(body[:cut]), head, body[cut:], head.startswith("query rowsort")))
    return records


def checksum(lines) -> str:
    """A short fingerprint of lines of bytes."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(len(line).to_bytes(4, "big") + line)
    return digest.hexdigest()[:8]


class Asker:
    """Runs statements on a connection and puts what comes back into the words of a script."""

    def __init__(self, connection):
        self.connection = connection.pgconn
        self.types = {oid: name for oid, name in connection.execute("SELECT oid, typname FROM pg_type").fetchall()}

    def ask(self, record: Record) -> Record:
        """The record with the expectation that this server would give it, and the error's message behind it."""
        answer = Record(record.sql, rowsort=record.rowsort)
        result = self.connection.exec_(record.sql.encode())
        answer.message = ""
        if result.status == 2:
            cells = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
            rows = ["\t".join("\\N" if cell is None else cell.decode().translate(ESCAPES) for cell in row) or "\\e" for row in cells]
            columns = [self.column(result, number) for number in range(result.nfields)]
            answer.head = " ".join(["query", *(["rowsort"] if record.rowsort else []), *columns])
            if record.rowsort:
                rows.sort()
            if len(rows) > ROWS_SHOWN:
                rows = [f"{len(rows)} rows {checksum([row.encode() for row in rows])}"]
            answer.tail = [f"---- {self.binary(record)}", *rows]
        elif result.status in (0, 1):
            answer.head = "statement"
        else:
            code = (result.error_field(67) or b"?????").decode()
            answer.head = f"statement error {code}"
            answer.message = (result.error_field(77) or result.error_message).decode(errors="replace").strip()
        return answer

    def column(self, result, number: int) -> str:
        name = result.fname(number).decode().replace("\\", "\\\\").replace(" ", "\\s").replace("\n", "\\n")
        oid, modifier = result.ftype(number), result.fmod(number)
        kind = self.types.get(oid, "user-defined" if oid >= 16384 else str(oid))
        return f"{name}:{kind}" + ("" if modifier == -1 else f":{modifier}")

    def binary(self, record: Record) -> str:
        """The checksum of what comes in binary format."""
        if ONCE.search(record.sql):
            return "-"
        result = self.connection.exec_params(record.sql.encode(), None, result_format=1)
        if result.status != 2:
            code = (result.error_field(67) or b"?????").decode()
            return f"error {code} {result.error_message.decode(errors='replace').strip().splitlines()[0]}"
        # Rows as lists of cells with their lengths; NULL is no cell.
        rows = []
        for row in range(result.ntuples):
            cells = [result.get_value(row, column) for column in range(result.nfields)]
            rows.append(b"".join(b"-" if cell is None else len(cell).to_bytes(4, "big") + cell for cell in cells))
        return checksum(sorted(rows) if record.rowsort else rows)


def differences(wanted: Record, got: Record) -> str:
    """How an answer differs from the expectation; nothing if it does not."""
    if wanted.head != got.head:
        if got.head.startswith("statement error"):
            return f"{got.head[16:]} {got.message}\nwanted {wanted.head}\n{got.sql}"
        if wanted.head.startswith("statement error"):
            return f"no error, wanted {wanted.head[16:]}\n{got.sql}\n" + "\n".join(got.tail)
        pairs = zip(wanted.head.split(" "), got.head.split(" "))
        first = next((f"column is {theirs}, wanted {ours}" for ours, theirs in pairs if ours != theirs), "number of columns")
        return f"{first}\n{got.sql}\nwanted {wanted.head}\ngot    {got.head}"
    if wanted.tail[1:] != got.tail[1:]:
        return "other rows\n" + got.sql + "\nwanted\n" + "\n".join(wanted.tail) + "\ngot\n" + "\n".join(got.tail)
    if wanted.tail != got.tail:
        return f"other bytes in binary: {got.tail[0]}\n{got.sql}\nwanted {wanted.tail[0]}\n" + "\n".join(got.tail[1:])
    return ""

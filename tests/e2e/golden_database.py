"""Databases made by released formats, kept as archives under tests/golden: how one is made, what it holds, how it is unpacked.

An archive `tests/golden/NAME.tar.xz` is the data directory of a server that was killed: tables of all types, indexes of all kinds,
sequences, what was dropped, several checkpoints with delta pages, and a log behind the newest one that spans two lives of the
server and has a side segment. `NAME.txt` beside it is what a server says that opens it: definitions, rows, sequences. Neither is ever made
anew: a later server has to open what that one has left. A new format gets an archive of its own, by `tests/golden/make NAME`.
"""

from __future__ import annotations

import hashlib
import tarfile
from contextlib import closing
from pathlib import Path

from harness import REPOSITORY, LogsteadServer, Server

DIRECTORY = REPOSITORY / "tests/golden"

# Before the first checkpoint.
DEFINITIONS = """
CREATE TABLE kinds (
    id int PRIMARY KEY, b boolean, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(12,3),
    c char(7), vc varchar(30), t text, bin bytea, d date, tm time, ts timestamp, tz timestamptz, u uuid, iv interval,
    ia int[], ta text[], o oid, nm name
);
INSERT INTO kinds VALUES
    (1, true, -32768, 9223372036854775807, 1.5, 2.718281828459045, 123456789012345678901234567890.000000001, 1.5, 'char', 'varchar',
     'text with ''quotes'' and a line
feed', '\\x00ff10', '2026-11-22', '23:59:59.999999', '2026-11-22 01:02:03.000004', '2026-11-22 01:02:03.000004+00',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1 year 2 mons -3 days 04:05:06.7', '{1,NULL,-3}', '{a,NULL,"b c","{}"}', 4294967295, 'a name'),
    (2, false, 32767, -9223372036854775808, 'NaN', 'Infinity', 'NaN', -999999999.999, '', '', '', '', '-infinity', '00:00', 'infinity',
     '-infinity', '00000000-0000-0000-0000-000000000000', '-178000000 years', '{}', '{}', 0, ''),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, true, 0, 0, '-0', '-Infinity', 0.00, 0, 'ünïcode', '日本語', '🜁', '\\x', '4713-01-01 BC', '24:00', '0001-01-01 00:00 BC',
     '1999-12-31 23:59:59+00', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '0', '{2147483647}', '{🜁}', 1, 'n');
CREATE TABLE parent (code text PRIMARY KEY, name varchar(40) NOT NULL UNIQUE);
INSERT INTO parent SELECT 'p' || g, 'parent ' || g FROM generate_series(1, 40) AS g;
CREATE TABLE child (
    id serial PRIMARY KEY,
    parent text NOT NULL REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE,
    position int NOT NULL,
    weight numeric(8,2) NOT NULL DEFAULT 1.25 CHECK (weight > 0),
    made timestamptz DEFAULT '2026-01-01 00:00+00',
    CONSTRAINT child_position UNIQUE (parent, position) DEFERRABLE INITIALLY DEFERRED
);
INSERT INTO child (parent, position, weight) SELECT 'p' || (1 + g % 40), g, 0.5 + g FROM generate_series(1, 1200) AS g;
CREATE TABLE looked_up (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, b int, name text, flag boolean, n numeric, "Odd" text);
INSERT INTO looked_up (a, b, name, flag, n, "Odd")
    SELECT g % 17, nullif(g % 5, 0), 'Name ' || g, g % 3 = 0, g / 8.0, repeat('o', g % 7) FROM generate_series(1, 1100) AS g;
CREATE INDEX ON looked_up (a);
CREATE INDEX ON looked_up (a DESC NULLS LAST, b ASC NULLS FIRST);
CREATE UNIQUE INDEX looked_up_lower ON looked_up (lower(name));
CREATE INDEX looked_up_partial ON looked_up (b) WHERE flag;
CREATE UNIQUE INDEX looked_up_covering ON looked_up (id, a) INCLUDE (name, n);
CREATE INDEX looked_up_expressions ON looked_up ((a + b), upper("Odd"));
CREATE TABLE tags (id int, tag text);
CREATE UNIQUE INDEX tags_once ON tags (id, tag) NULLS NOT DISTINCT;
INSERT INTO tags VALUES (1, 'x'), (1, 'y'), (2, NULL), (NULL, NULL);
CREATE TABLE bare (v text);
INSERT INTO bare VALUES ('same'), ('same'), (NULL), (NULL);
CREATE SEQUENCE counted START 100 INCREMENT 7 MAXVALUE 100000 CYCLE;
SELECT nextval('counted') FROM generate_series(1, 5);
CREATE SEQUENCE downwards AS smallint INCREMENT -1;
CREATE TABLE gone (id int PRIMARY KEY, v text);
INSERT INTO gone SELECT g, 'gone' FROM generate_series(1, 500) AS g;
CREATE TABLE long (id int PRIMARY KEY, v text);
INSERT INTO long SELECT g, repeat(chr(65 + g % 26), 4800) FROM generate_series(1, 1024) AS g;
INSERT INTO long VALUES (2000, repeat('a row in pieces ', 300000));
CREATE TABLE sparse (id int PRIMARY KEY);
INSERT INTO sparse SELECT generate_series(1, 180000);
DELETE FROM sparse WHERE id % 900 <> 0;
CREATE TABLE altered (id int PRIMARY KEY, first text, second int);
INSERT INTO altered SELECT g, 'first ' || g, g FROM generate_series(1, 60) AS g;
"""

# Behind each of the first checkpoints a little, so that there are delta pages.
DELTAS = [
    "UPDATE child SET weight = weight + 1 WHERE id % 97 = 0; DELETE FROM child WHERE id % 131 = 0; DROP TABLE gone",
    """ALTER TABLE altered DROP COLUMN first; ALTER TABLE altered ADD COLUMN third text DEFAULT 'added';
       INSERT INTO altered VALUES (100, 100, 'later'); UPDATE looked_up SET n = -n WHERE id IN (3, 1060);
       UPDATE parent SET code = 'renamed' WHERE code = 'p7'""",
    """INSERT INTO child (parent, position) SELECT 'p1', 10000 + g FROM generate_series(1, 30) AS g;
       UPDATE kinds SET t = t || ' (changed)' WHERE id IN (1, 2); DROP INDEX looked_up_expressions;
       CREATE INDEX looked_up_later ON looked_up (length(name), n DESC)""",
]

# Behind the newest checkpoint, in the log only.
TAIL = """
UPDATE child SET weight = 77.77 WHERE id % 211 = 0;
DELETE FROM parent WHERE code = 'p9';
SELECT nextval('counted') FROM generate_series(1, 3);
SELECT nextval('downwards') FROM generate_series(1, 4);
CREATE TABLE young (id bigserial PRIMARY KEY, v text NOT NULL, CONSTRAINT young_v CHECK (v <> 'bad'));
CREATE INDEX young_v_idx ON young (v) WHERE id > 3;
INSERT INTO young (v) SELECT 'young ' || g FROM generate_series(1, 50) AS g;
CREATE TABLE died_young (id int);
INSERT INTO died_young VALUES (1);
DROP TABLE died_young;
UPDATE long SET v = repeat('side segment ', 400) WHERE id <= 300;
DELETE FROM tags WHERE tag = 'y';
"""

# In the second life of the server, whose start finds the tail of the first.
SECOND_LIFE = """
INSERT INTO young (v) VALUES ('in the second life');
UPDATE looked_up SET name = 'renamed ' || id WHERE id BETWEEN 700 AND 720;
DELETE FROM sparse WHERE id = 900;
ALTER TABLE young ADD COLUMN more int DEFAULT 5;
INSERT INTO bare VALUES ('last');
"""


def build(server: Server) -> None:
    """Fills a fresh server, and leaves it killed: what its directory holds then is the golden database."""
    arguments = ("--checkpoint-interval", "0", "--segment-size", "1MB", "--workers", "2")
    server.start(arguments)
    with closing(server.connect(autocommit=True)) as connection, closing(server.connect(autocommit=True)) as other:
        for statement in statements(DEFINITIONS):
            connection.execute(statement)
        connection.execute("CHECKPOINT")
        for delta in DELTAS:
            for statement in statements(delta):
                other.execute(statement)
            connection.execute("CHECKPOINT")
        for turn, statement in enumerate(statements(TAIL)):
            # Both workers', so both lanes'.
            (connection, other)[turn % 2].execute(statement)
        # Neither of these is in the database: one is not committed, one was taken back.
        other.execute("BEGIN")
        other.execute("INSERT INTO bare VALUES ('never committed')")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM kinds")
        connection.execute("ROLLBACK")
        server.kill()
    server.start(arguments)
    for statement in statements(SECOND_LIFE):
        server.execute(statement)
    server.kill()


def statements(script: str) -> list[str]:
    """The statements of a script in which no constant contains `;`."""
    return [part.strip() for part in script.split(";") if part.strip()]


def dump(server: Server, sequences: bool = True) -> str:
    """Definitions and contents, in an order that does not depend on how they are stored. Sequences that were used in this life of the server
    would be further on after a crash."""
    said = []
    with server.connect(autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET extra_float_digits = 1")

        def show(title: str, query: str) -> None:
            said.append(f"-- {title}")
            with connection.cursor().copy(f"COPY ({query}) TO STDOUT") as copy:
                lines = b"".join(copy).decode().splitlines()
            # What is long is long because it repeats.
            said.extend(line if len(line) < 400 else f"{line[:20]}... {len(line)} {hash_of(line)}" for line in sorted(lines))

        show(
            "columns",
            "SELECT attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,"
            " pg_get_expr(adbin, adrelid) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped",
        )
        show(
            "constraints",
            "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace",
        )
        show("indexes", "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        if sequences:
            show(
                "sequences",
                "SELECT sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, last_value FROM pg_sequences",
            )
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        for (name,) in names:
            show(name, f"SELECT * FROM {name}")
    return "\n".join(said) + "\n"


def hash_of(line: str) -> str:
    """A short one that never changes."""
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def names() -> list[str]:
    """All that are kept."""
    return sorted(path.name.removesuffix(".tar.xz") for path in DIRECTORY.glob("*.tar.xz"))


def unpack(name: str, server: LogsteadServer) -> str:
    """Puts a golden database where the server looks for its data; what a server must say of it."""
    server.data.mkdir(parents=True)
    with tarfile.open(DIRECTORY / f"{name}.tar.xz") as archive:
        # With the modes that it had: a server refuses a newer one that others can open, and closes an older one.
        archive.extractall(server.data, filter="tar")
        server.data.chmod(archive.getmember("log").mode)
    return (DIRECTORY / f"{name}.txt").read_text()


def pack(name: str, server: LogsteadServer) -> Path:
    """The other way round; never over one that is there."""

    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    path = DIRECTORY / f"{name}.tar.xz"
    with tarfile.open(path, "x:xz", preset=9) as archive:
        for entry in sorted(server.data.rglob("*")):
            archive.add(entry, str(entry.relative_to(server.data)), recursive=False, filter=anonymous)
    return path

#!/usr/bin/env python3
"""Compares our grammar with PostgreSQL 15's: accepted or refused, where, and with which message.

    compare.py SOCKET SCRIPTS... --judge PROGRAM [--mutants N] [--seed S] [--show N] [--golden FILE]

SOCKET is that of a running PostgreSQL 15 (/path/.s.PGSQL.5432) that trusts its clients. SCRIPTS are files: psql's scripts (.sql), or JSON lists of
objects with `sql`. PROGRAM is `cargo build --release -p logstead-sql-parse --example judge`. With --mutants each statement is also tried with a token taken
away, doubled, exchanged or put in, that many times.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "suites" / "regress")]

from postgres import SENTINEL, Answer, Connection  # noqa: E402
from script import Reader, Statement  # noqa: E402

# The golden file is no larger.
GOLDEN_BYTES_MAX = 120_000
TOKEN = re.compile(
    r"\s+|--[^\n]*|[A-Za-z_][A-Za-z_0-9$]*|\d+(?:\.\d+)?|'(?:[^']|'')*'|\"[^\"]*\"|\$\w*\$|::|[-+*/<>=~!@#%^&|`?]+|.", re.S
)


def statements(path: Path) -> list[tuple[str, str]]:
    """The statements of a file, each with its place."""
    text = path.read_text(errors="replace")
    if path.suffix == ".json":
        return [(f"{path.name}:{at}", row["sql"]) for at, row in enumerate(json.loads(text))]
    reader, found = Reader(text, {}), []
    while (item := reader.next()) is not None:
        if isinstance(item, Statement):
            found.append((f"{path.name}:{item.line}", item.sql))
            if re.search(r"(?i)^\s*copy\b.*\bfrom\s+stdin\b", item.sql):
                behind = reader.text[reader.at :]
                if re.search(r"^\\\.$", behind, re.M):
                    reader.data()
    return found


def ours(program: str, texts: list[str]) -> list[Answer | None]:
    """What our grammar says of each, with the sentinel behind it."""
    told = subprocess.run(
        [program], input="\0".join(text + SENTINEL for text in texts).encode(), stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    answers = []
    for line in told.split("\n")[:-1]:
        if line == "ok":
            answers.append(None)
            continue
        code, position, message = line.split("\t", 2)
        message = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], message)
        answers.append(Answer(code, None if position == "-" else int(position), message))
    assert len(answers) == len(texts), (len(answers), len(texts))
    return answers


def mutant(sql: str, pool: list[str], dice: random.Random) -> str:
    """The statement with a token changed."""
    tokens = TOKEN.findall(sql)
    solid = [at for at, token in enumerate(tokens) if not token.isspace()]
    if not solid:
        return sql
    at, how = dice.choice(solid), dice.randrange(5)
    if how == 0:
        tokens[at] = ""
    elif how == 1:
        tokens[at] += " " + tokens[at]
    elif how == 2:
        tokens[at] = dice.choice(pool)
    elif how == 3:
        tokens[at] = dice.choice(pool) + " " + tokens[at]
    else:
        other = dice.choice(solid)
        tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


def accepted(sql: str, answer: Answer | None) -> bool:
    """Is it the sentinel that is complained of?"""
    return answer is not None and answer.message == 'syntax error at or near "]"' and answer.position == len(sql) + len(SENTINEL)


def escaped(text: str) -> str:
    """The text in one line, without tabs."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def write_golden(path: Path, found: list[tuple[str, str]], theirs: list[Answer], dice: random.Random) -> None:
    """Statements with PostgreSQL's answers, a line each: SQLSTATE, position, message, statement; or `ok` and the statement."""
    lines = set()
    for (_, sql), their in zip(found, theirs):
        if len(sql) <= 150 and their.code != "08P01":
            told = "ok" if accepted(sql, their) else f"{their.code}\t{their.position or '-'}\t{escaped(their.message)}"
            if told == "ok" or not their.message.endswith('at or near "]"') and SENTINEL not in their.message:
                lines.add(f"{told}\t{escaped(sql)}\n")
    lines = sorted(lines)
    dice.shuffle(lines)
    size, kept = 0, []
    for line in lines:
        size += len(line.encode())
        if size > GOLDEN_BYTES_MAX:
            break
        kept.append(line)
    path.write_text("".join(sorted(kept)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket")
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--judge", required=True, help="the example program that tells what our grammar answers")
    parser.add_argument("--mutants", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=40)
    parser.add_argument("--golden", type=Path, help="write statements of at most 150 characters with PostgreSQL's answers there, as many as fit")
    options = parser.parse_args()
    found = [one for path in options.scripts for one in statements(path)]
    found = [(place, sql.replace("\0", "")) for place, sql in found]
    if options.mutants:
        dice = random.Random(options.seed)
        pool = sorted({token for _, sql in found for token in TOKEN.findall(sql) if not token.isspace() and len(token) < 20})
        found = [(place, mutant(sql, pool, dice)) for place, sql in found for _ in range(options.mutants)]
    postgres = Connection(options.socket)
    theirs = [postgres.judge(sql) for _, sql in found]
    if options.golden:
        write_golden(options.golden, found, theirs, random.Random(options.seed))
    answers = ours(options.judge, [sql for _, sql in found])
    counts, shown = collections.Counter(), 0
    for (place, sql), their, our in zip(found, theirs, answers):
        is_accepted = accepted(sql, their)
        counts["accepted by PostgreSQL" if is_accepted else "refused by PostgreSQL"] += 1
        if our == their:
            counts["same"] += 1
            continue
        if is_accepted != accepted(sql, our):
            kind = "wrongly refused" if is_accepted else "wrongly accepted"
        elif our is None or our.position != their.position:
            kind = "other position"
        elif our.code != their.code:
            kind = "other SQLSTATE"
        else:
            kind = "other message"
        counts[kind] += 1
        if shown < options.show:
            shown += 1
            print(f"{kind}: {place}\n    {sql.strip()[:400]!r}\n    theirs {their}\n    ours   {our}")
    print(f"{len(found)} statements:", ", ".join(f"{number} {what}" for what, number in counts.items()))


if __name__ == "__main__":
    main()

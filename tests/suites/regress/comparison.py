"""Compares the answers of two servers to a script's statements, and names the cause of each difference."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass, field

# Errors that say that something of that name is not there.
MISSING = {
    "42P01", "42883", "42704", "42703", "3F000", "3D000", "26000", "34000", "42P02", "58P01",
}  # fmt: skip
# Refused by name: what is not supported, a system catalog that is written, another value of a setting that has one.
REFUSED = re.compile(r'is not supported$|is a system catalog$|^invalid value for parameter "')
# The names of what a statement makes or changes.
NAMED = re.compile(
    r"""(?ix)\b(?:into|update|from|table|view|on|function|procedure|aggregate|type|domain|index|sequence|trigger|operator|cast|cursor|declare
    |prepare|set|policy|schema|tablespace|conversion|rule)\s+(?:concurrently\s+|if\s+(?:not\s+)?exists\s+|only\s+|local\s+|session\s+)*
    (?!(?:on|or|of|to|for|as)\b)([a-z_][\w.]*|"[^"]+")"""
)
# Words that stand where names do, and functions that a trigger calls, which is no change of them.
WORDS = set(
    "all always as by cascade class column constraint current data default delete distinct domain each exists false family for from function group if in"
    " index insert into is local not null of off on only option or order policy procedure restrict returning row rows schema select session set"
    " statement table temp temporary to trigger true truncate type unlogged update user using value values view when where with without".split()
)
CALLED = re.compile(r"(?i)\bexecute\s+(?:function|procedure)\s+[\w.]+")
# Those of the parents whose rows a table would have been part of, and of the table that a rule would have changed.
PARENTS = re.compile(r"(?is)\binherits?\s*\(?\s*([a-z_][\w.]*(?:\s*,\s*[a-z_][\w.]*)*)")
RULED = re.compile(r"(?i)\bon\s+(?:select|insert|update|delete)\s+to\s+([a-z_][\w.]*)")
# Where objects are shown that a statement was to make or to change.
SHOWN = [
    (re.compile(rf"(?is)^\s*(?:create|alter)\s+(?:or\s+replace\s+)?{made}\b"), set(places.split()))
    for made, places in [
        (
            r"(?:foreign\s+(?:data|table)|server|user\s+mapping)",
            "pg_foreign_data_wrapper pg_foreign_server pg_user_mapping pg_user_mappings foreign_data_wrappers foreign_data_wrapper_options"
            " foreign_servers foreign_server_options user_mappings user_mapping_options foreign_tables foreign_table_options",
        ),
        ("publication", "pg_publication pg_publication_tables"),
        ("subscription", "pg_subscription"),
        ("statistics", "pg_statistic_ext pg_statistic_ext_data pg_stats_ext pg_stats_ext_exprs"),
        (r"operator\s+class", "pg_opclass pg_amop pg_amproc"),
        (r"operator\s+family", "pg_opfamily pg_amop pg_amproc"),
        (r"operator(?!\s+(?:class|family))", "pg_operator"),
        ("(?:default\\s+)?conversion", "pg_conversion"),
        ("(?:trusted\\s+)?(?:procedural\\s+)?language", "pg_language"),
        (r"text\s+search\s+template", "pg_ts_template"),
        (r"text\s+search\s+parser", "pg_ts_parser"),
        (r"text\s+search\s+dictionary", "pg_ts_dict"),
    ]
]
VIEW = re.compile(r"(?is)^\s*create\s+(?:or\s+replace\s+)?(?:temp\s+|temporary\s+|recursive\s+|materialized\s+)*view\s+([a-z_][\w.]*)(.*)")
BEGIN = re.compile(r"(?i)\s*(begin|start\s+transaction)\b")
END = re.compile(r"(?i)\s*(commit|end|rollback|abort)\b(?!.*\bto\b)")
# Causes by what the statement or the server's error says; the first that is found counts.
CAUSES = [
    ("partitioning", r"(?i)partition"),
    ("inheritance", r"(?i)\binherits?\b|\bINHERIT\b"),
    ("index methods", r"(?i)using (gist|gin|brin|spgist|hash)\b|access method"),
    ("collations", r"(?i)\bcollat"),
    ("xml", r"(?i)\bxml"),
    ("full text search", r"(?i)tsvector|tsquery|text search|\bts_|to_ts"),
    ("replication", r"(?i)\b(publication|subscription)\b"),
    ("foreign data", r"(?i)foreign (data|table)|\bserver\b|user mapping"),
    ("statistics objects", r"(?i)\bstatistics\b"),
    ("rules", r"(?i)\brule\b"),
    ("event triggers", r"(?i)event trigger"),
    ("tablespaces", r"(?i)tablespace"),
    ("large objects", r"(?i)large object|\blo_|lowrite|loread"),
    ("C functions", r"(?i)language\s+'?c\b|language internal"),
    ("two-phase commit", r"(?i)prepare transaction|commit prepared|rollback prepared"),
]


# What is kept another way, by choice, and differs where a script asks for it: looked at one by one. It counts as a difference all the same.
KEPT = {
    (script, line): cause
    for cause, places in {
        # An updated row is at the end of PostgreSQL's heap; here it stays where it is.
        "choice: where an updated row is found without ORDER BY": {
            "portals": "387 389 391 393 395 397 399 400 406 408 410 412 414 416 430 431 444 446 457 462 467 469 508",
        },
        # Rows come in the order of the index that finds them, in PostgreSQL in the heap's, which a bitmap goes through.
        "choice: order of rows that an index finds": {
            "window": "186 190 194 198 210 214 222 226 230 234 238 242 262 330 338 524",
            "tsrf": "153",
        },
        # There are no pages of 8 KiB.
        "choice: sizes of relations": {
            "insert": "51",
            "mvcc": "22",
            "vacuum": "183",
            "vacuum_parallel": "28",
            "reloptions": "66",
        },
        # Large values are kept with their row.
        "choice: no table of large values beside a table": {
            "tablespace": "77",
            "strings": "577 587",
            "alter_table": "1531 1539",
            "reloptions": "68 105",
            "cluster": "80",
            "create_index": "1215 1219",
        },
        # The number of an object is its offset in the value, which is not laid out as PostgreSQL's.
        "choice: numbers of objects of .keyvalue()": {"jsonb_jsonpath": "296 298"},
        # A row stays where it is, and other statements take numbers of commands.
        "choice: where an updated row is, and numbers of commands": {"combocid": "23 30 35 40 51 55 74 79 80 85 89 93"},
        # A savepoint writes under its transaction's number.
        "choice: savepoints have no numbers": {"transactions": "198 209"},
        # Plans are made once for all values.
        "choice: no plans for single values of parameters": {"plancache": "195 201 210 213 222"},
        # CLUSTER moves no rows: there is no heap to order.
        "choice: CLUSTER leaves rows where they are": {
            "cluster": "71 261 287 300",
            "tuplesort": "91 96 107 112 123 128 139 144",
        },
        # Rows of a join come in the order of the other side.
        "choice: order of a join's rows": {"json": "85 154", "jsonb": "128"},
        # Only SCRAM proves who a client is.
        "choice: no passwords of MD5": {"password": "26 34 66"},
        # log_cnt tells how many numbers the log is ahead.
        "choice: numbers of a sequence that are logged ahead": {"sequence": "140"},
    }.items()
    for script, lines in places.items()
    for line in lines.split()
}


@dataclass
class Verdict:
    """What a statement came to. The first line of `detail` is the cause."""

    place: str
    status: str
    detail: str = ""
    kind: str = ""


@dataclass
class Shares:
    """Counts of a script, or of all."""

    statements: int = 0
    agree: int = 0
    missing: int = 0
    refused: int = 0
    plans: int = 0
    unsteady: int = 0
    causes: Counter = field(default_factory=Counter)

    def count(self, verdict: Verdict) -> None:
        """Takes in a statement."""
        if verdict.status == "skip":
            self.unsteady += 1
            return
        self.statements += 1
        self.agree += verdict.status == "pass"
        self.missing += verdict.kind == "missing"
        self.refused += verdict.kind == "refused"
        self.plans += verdict.kind == "plan"
        if verdict.status == "fail":
            self.causes[verdict.detail.splitlines()[0]] += 1

    def add(self, other: "Shares") -> None:
        """Takes in the counts of a script."""
        for name in ("statements", "agree", "missing", "refused", "plans", "unsteady"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.causes.update(other.causes)

    def rest(self) -> int:
        """The statements whose difference nothing else explains."""
        return self.statements - self.agree - self.missing - self.refused - self.plans

    def row(self) -> str:
        """The counts."""
        return f"{self.statements} {self.agree} {self.missing} {self.refused} {self.plans} {self.rest()}"

    def text(self) -> str:
        """The counts, to be read."""
        return (
            f"{self.agree:6} of {self.statements:6} agree; missing by name {self.missing:5}, refused by name {self.refused:5}, "
            f"plans {self.plans:4}, other {self.rest():5}"
        )

    def closing(self) -> str:
        """The shares."""
        named = self.statements - self.missing
        known = named - self.refused
        judged = known - self.plans
        return (
            f"agree: {share(self.agree, self.statements)} of all {self.statements} statements; "
            f"{share(self.agree, named)} of the {named} where nothing that is missing by name is involved; "
            f"{share(self.agree, known)} of the {known} where nothing is that is refused by name (0A000) either; "
            f"{share(self.agree, judged)} of the {judged} of these that are not plan texts of EXPLAIN; "
            f"{self.unsteady} that PostgreSQL does not answer the same twice are not counted"
        )


def share(part: int, of: int) -> str:
    """In percent."""
    return f"{100 * part / of:.1f} %" if of else "nothing"


def fleeting(sql: str) -> bool:
    """Whether an answer is a number of an object or of a transaction, or a name of a file or program, that the next server cannot give."""
    if re.fullmatch(r"(?i)select (txid_current|pg_current_xact_id)\(\)( as \w+)?", sql.strip()):
        return True
    return bool(re.search(r"(?i)\b(pg_relation_filepath|relfilenode as main_filenode|oid as datoid|as temp_schema_name|version\(\))", sql))


def plan(sql: str) -> bool:
    """Whether a statement's answer is a plan."""
    return bool(re.match(r"(?is)\s*(/\*.*?\*/\s*)?explain\b", sql)) or bool(re.search(r"(?i)\bexplain_\w+\(|\bcheck_estimated_rows\(", sql))


def compare(script: str, expected: list[dict], answers: list) -> list[Verdict]:
    """A verdict for each statement that PostgreSQL answered."""
    verdicts, seen = [], Counter()
    # Where one server went another way (\\if, \\gexec), statements are found again by place and text.
    mine = [(answer.line, answer.sql) for answer in answers]
    theirs = [(record["line"], record["sql"]) for record in expected]
    pairs: dict[int, int] = {}
    if mine == theirs:
        pairs = {at: at for at in range(len(mine))}
    else:
        for block in difflib.SequenceMatcher(None, [at[0] for at in theirs], [at[0] for at in mine], autojunk=False).get_matching_blocks():
            pairs.update({block.a + at: block.b + at for at in range(block.size)})
    aborted = Wake()
    for at, record in enumerate(expected):
        seen[record["line"]] += 1
        place = str(record["line"]) + (f".{seen[record['line']]}" if seen[record["line"]] > 1 else "")
        got = answers[pairs[at]].results if at in pairs else None
        if got is not None and record["results"] == got:
            verdicts.append(Verdict(place, "pass" if record["steady"] else "skip"))
        elif not record["steady"] or fleeting(record["sql"]):
            verdicts.append(Verdict(place, "skip"))
        elif got is None:
            verdicts.append(Verdict(place, "fail", f"did not run\n{record['sql']}", "other"))
        else:
            verdicts.append(judge(script, place, record["sql"], record["results"], got, aborted))
        aborted.see(record["sql"], record["results"], got, verdicts[-1])
    return verdicts


def named(sql: str) -> set[str]:
    """The names of what a statement makes or changes, and of what it would have changed the rows of."""
    sql = CALLED.sub("", sql)
    names = [*NAMED.findall(sql), *RULED.findall(sql)]
    names += [name for made, places in SHOWN if made.match(sql) for name in places]
    names += [name for parents in PARENTS.findall(sql) for name in parents.split(",")]
    return {bare(name) for name in names} - WORDS


def bare(name: str) -> str:
    """A name without schema and quotes."""
    return name.strip().strip('"').rpartition(".")[2].lower()


class Wake:
    """What earlier differences explain: a transaction that has failed here and not there, and rows, objects and settings that are not there because the
    statement that makes them was refused, or its transaction failed; in views, too."""

    def __init__(self):
        self.kind, self.cause = "", ""
        self.names: dict[str, tuple[str, str]] = {}
        self.views: dict[str, set[str]] = {}
        self.block: set[str] = set()

    def see(self, sql: str, expected, got, verdict: Verdict) -> None:
        """Takes in a statement."""
        if view := VIEW.match(sql):
            self.views[bare(view[1])] = words(view[2])
        if BEGIN.match(sql):
            self.block = set()
        elif not END.match(sql):
            self.block |= named(sql)
        error = got and got[-1][0] == "error" and got[-1]
        if verdict.status != "fail":
            return
        if error and error[1] not in ("25P02", "3B001"):
            self.kind, self.cause = verdict.kind, verdict.detail.splitlines()[0]
        if verdict.kind in ("missing", "refused") and expected[-1][0] != "error":
            reason = (verdict.kind, verdict.detail.splitlines()[0])
            lost = rolled_back(expected, got)
            # Other rows that are only read change nothing.
            if error or lost or got and got[-1][0] == "tag":
                for name in named(sql) | (self.block if lost else set()):
                    self.names.setdefault(name, reason)

    def of(self, sql: str) -> tuple[str, str] | None:
        """What explains a difference of this statement, by a name in it, or in a view that it reads."""
        seen, asked = set(), words(sql)
        while asked:
            for word in sorted(asked):
                if word in self.names:
                    return self.names[word]
            seen |= asked
            asked = {word for view in asked if view in self.views for word in self.views[view]} - seen
        return None


def words(sql: str) -> set[str]:
    """The words of a statement."""
    return {word.lower() for word in re.findall(r"[A-Za-z_]\w*", sql)}


def rolled_back(expected, got) -> bool:
    """Whether a transaction ended otherwise: it failed before."""
    return bool(expected and got) and expected[-1] == ["tag", "COMMIT"] and got[-1] == ["tag", "ROLLBACK"]


def judge(script: str, place: str, sql: str, expected: list, got: list, wake: Wake) -> Verdict:
    """The verdict on a statement whose answers are not the same to the letter."""
    if len(expected) == len(got) and all(same(sql, one, other) for one, other in zip(expected, got)):
        return Verdict(place, "pass")
    error = got[-1] if got and got[-1][0] == "error" else None
    their_error = expected[-1] if expected and expected[-1][0] == "error" else None
    kind, cause = "other", None
    if error and error[1] in ("25P02", "3B001") and not (their_error and their_error[1] == error[1]):
        kind, cause = wake.kind or "other", wake.cause or "a transaction that failed here"
    elif error and error[1] in MISSING and not (their_error and their_error[1] == error[1]):
        kind, cause = "missing", f"missing by name: {general(error[2])}"
    elif error and REFUSED.search(error[2]) or error and error[1] == "0A000" and not (their_error and their_error[1] == "0A000"):
        kind, cause = "refused", by_words(sql + " " + error[2]) or f"refused: {general(error[2])}"
    elif error and error[1] in MISSING and their_error and error[2] != their_error[2]:
        cause = f"message: {general(their_error[2])}"
    elif plan(sql):
        kind, cause = "plan", "plan texts of EXPLAIN"
    elif before := (wake.kind, wake.cause) if wake.cause and rolled_back(expected, got) else wake.of(sql):
        kind, cause = before
        cause = cause if cause.startswith("after ") else f"after {cause}"
    if cause is None:
        cause = by_words(sql + (" " + error[2] if error else ""))
    if cause is None:
        if error and their_error:
            cause = f"other error: {error[1]} {general(error[2])}"
        elif error:
            cause = f"error: {error[1]} {general(error[2])}"
        elif their_error:
            cause = f"no error: {their_error[1]} {general(their_error[2])}"
        elif rows_of(expected) and rows_of(expected) == rows_of(got):
            cause = "other order of rows or names of columns"
        elif expected and got and expected[-1][0] == "rows" and got[-1][0] == "rows":
            cause = KEPT.get((script, place.partition(".")[0])) or "other rows"
        else:
            cause = KEPT.get((script, place.partition(".")[0])) or "other command tag"
    return Verdict(place, "fail", f"{cause}\n{sql[:2000]}\n  expected {str(expected)[:3000]}\n  got      {str(got)[:3000]}", kind)


def by_words(text: str) -> str | None:
    """The cause that words tell."""
    return next((name for name, pattern in CAUSES if re.search(pattern, text)), None)


def rows_of(results: list):
    """The rows of a last result, in any order."""
    return sorted(map(str, results[-1][2])) if results and results[-1][0] == "rows" else None


def same(sql: str, expected: list, got: list) -> bool:
    """Whether two results agree."""
    if expected == got:
        return True
    if expected[0] != got[0] or re.search(r"(?i)\border\s+by\b", sql):
        return False
    if expected[0] == "rows":
        return expected[1] == got[1] and sorted(map(str, expected[2])) == sorted(map(str, got[2]))
    return expected[0] == "copy" and sorted(expected[1]) == sorted(got[1])


def general(message: str) -> str:
    """A message without the names and numbers in it."""
    message = re.sub(r'"[^"]*"', '"..."', message.splitlines()[0] if message else "")
    message = re.sub(r"\b\d+\b", "N", message)
    return message[:110]

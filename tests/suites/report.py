"""What a suite's run comes to: results, known failures, shares.

A file of known failures (`known.txt` beside each suite; `known_postgres.txt` for PostgreSQL itself) has a line `= REASON` and below it
the tests that fail for it. `*` in a name stands for anything; what follows `  # ` is a remark. A failure that is not named is a
regression, and fails the run; a named test that passes is told. A line `NAME: 3 17 40.2` stands for `NAME:3`, `NAME:17` and `NAME:40.2`.
"""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

PLACES = re.compile(r"([\w.]+): ((?:\d+(?:\.\d+)?\s*)+)")
SHARES = Path(__file__).with_name("shares.txt")


@dataclass
class Result:
    """One test: `pass`, `fail` or `skip`, and in a line or more why it failed."""

    name: str
    status: str
    detail: str = ""


def read_results(path: Path) -> list[Result]:
    """What a suite's own runner wrote, one JSON object per line. The worst counts if a test is named twice."""
    worst = {"skip": 0, "pass": 1, "fail": 2}
    found: dict[str, Result] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        result = Result(**json.loads(line))
        before = found.get(result.name)
        if before is None or worst[result.status] > worst[before.status]:
            found[result.name] = result
    return list(found.values())


@dataclass
class Known:
    """The known failures of a suite: reasons in order, with their names."""

    path: Path
    preface: list[str] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Known":
        known, reason = cls(path), None
        for line in path.read_text().splitlines() if path.exists() else []:
            if line.startswith("= "):
                reason = known.reasons.setdefault(line[2:].strip(), [])
            elif line.startswith("#") and reason is None:
                known.preface.append(line)
            elif line.strip() and not line.startswith("#"):
                name, _, remark = line.partition("  # ")
                if reason is None:
                    raise SystemExit(f"{path}: {name}: there is no reason above it")
                if places := PLACES.fullmatch(name.strip()):
                    reason.extend(f"{places[1]}:{place}" for place in places[2].split())
                    continue
                reason.append(name.strip())
                known.remarks[name.strip()] = remark.strip()
        known._compile()
        return known

    def _compile(self):
        self.exact, self.patterns = {}, []
        for reason, names in self.reasons.items():
            for name in names:
                if "*" in name:
                    pattern = re.compile(".*".join(re.escape(part) for part in name.split("*")), re.DOTALL)
                    self.patterns.append((pattern, name, reason))
                else:
                    self.exact[name] = reason

    def reason(self, name: str) -> str | None:
        """Why a test is known to fail, if it is."""
        if name in self.exact:
            return self.exact[name]
        return next((reason for pattern, _, reason in self.patterns if pattern.fullmatch(name)), None)

    def update(self, results: list[Result]) -> None:
        """Takes out what passes and was named in full, and puts in what fails and was not named, its error as the reason."""
        passed = {result.name for result in results if result.status == "pass"}
        for names in self.reasons.values():
            names[:] = [name for name in names if name not in passed]
        for result in results:
            if result.status == "fail" and self.reason(result.name) is None:
                self.reasons.setdefault(cause(result.detail), []).append(result.name)
        self._compile()
        lines = self.preface
        for reason, names in self.reasons.items():
            if names:
                lines = [*lines, *([""] if lines else []), f"= {reason}"]
                for name in in_lines(names):
                    lines.append(f"{name}  # {self.remarks[name]}" if self.remarks.get(name) else name)
        if lines:
            self.path.write_text("\n".join(lines) + "\n")
        else:
            self.path.unlink(missing_ok=True)


def in_lines(names: list[str]) -> list[str]:
    """Names as a file of known failures has them: those of one script together, wrapped."""
    lines, scripts = [], {}
    for name in names:
        script, _, place = name.rpartition(":")
        if script and PLACES.fullmatch(f"{script}: {place}"):
            scripts.setdefault(script, []).append(place)
        else:
            lines.append(name)
    for script, places in scripts.items():
        places.sort(key=lambda place: tuple(map(int, place.split("."))))
        lines += textwrap.wrap(" ".join(places), 116 - len(script), initial_indent=f"{script}: ", subsequent_indent=f"{script}: ")
    return lines


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def cause(detail: str) -> str:
    """An error without the names and numbers in it, so that equal causes are counted together."""
    line = re.sub(r'"[^"]*"', '"..."', first_line(detail))
    return (re.sub(r"\b0x[0-9a-f]+|(?<![\w])\d+(?=\s|$)", "N", line) or "no reason given")[:120]


def share(passed: int, of: int) -> str:
    """`passed of of`, and in percent."""
    return f"{passed} of {of} pass ({100 * passed / of:.1f} %)" if of else "nothing ran"


def recorded_shares() -> dict[tuple[str, str], tuple[int, int]]:
    """What `--update` wrote for each suite and server."""
    shares = {}
    for line in SHARES.read_text().splitlines() if SHARES.exists() else []:
        if line and not line.startswith("#"):
            suite, server, passed, of = line.split()
            shares[suite, server] = (int(passed), int(of))
    return shares


def record_share(suite: str, server: str, passed: int, of: int) -> None:
    """Keeps a whole run's share."""
    shares = recorded_shares()
    shares[suite, server] = (passed, of)
    lines = ["# suite, server, tests that passed, tests that ran: written by ./test suites --update"]
    lines += [f"{suite} {server} {passed} {of}" for (suite, server), (passed, of) in sorted(shares.items())]
    SHARES.write_text("\n".join(lines) + "\n")


def judge(suite: str, server: str, results: list[Result], known: Known, log: Path) -> tuple[str, bool]:
    """Tells what is new, writes every failure to `log`, and gives the closing line and whether the run is good."""
    failed = [result for result in results if result.status == "fail"]
    passed = [result for result in results if result.status == "pass"]
    skipped = len(results) - len(failed) - len(passed)
    with log.open("w") as out:
        for result in failed:
            out.write(f"==== {result.name}\n{known.reason(result.name) or 'NEW'}\n{result.detail}\n\n")
    causes: dict[str, int] = {}
    for result in failed:
        causes[cause(result.detail)] = causes.get(cause(result.detail), 0) + 1
    for text, count in sorted(causes.items(), key=lambda item: -item[1])[:15]:
        print(f"{count:6} x {text}")
    regressions = [result for result in failed if known.reason(result.name) is None]
    for result in regressions[:40]:
        print(f"REGRESSION {result.name}: {first_line(result.detail)[:200]}")
    if len(regressions) > 40:
        print(f"... and {len(regressions) - 40} more: {log}")
    for result in passed:
        if result.name in known.exact:
            print(f"passes, though known to fail ({known.exact[result.name]}): {result.name}")
    ran = len(passed) + len(failed)
    closing = f"{suite} on {server}: {share(len(passed), ran)}, {skipped} skipped, {len(failed) - len(regressions)} known failures"
    closing += f", {len(regressions)} REGRESSIONS" if regressions else ""
    other = recorded_shares().get((suite, "postgres"))
    if server != "postgres" and other:
        closing += f"; PostgreSQL 15: {share(*other)}"
        if other[1] > ran:
            closing += f", {other[1] - ran} of these did not run here"
    return closing, bool(ran) and not regressions

"""Reads psql's scripts as psql does: what is sent to the server, and the backslash commands between.

`Reader.next()` gives one `Statement` or `Command` after the other. Variables are put in when a statement is read, so they have their values of that
moment. A semicolon ends a statement outside quotes, comments, parentheses and the BEGIN ATOMIC ... END of a function's body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

IDENTIFIER = re.compile(r"[A-Za-z_\x80-\uffff][A-Za-z0-9_$\x80-\uffff]*")
DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\uffff][A-Za-z0-9_\x80-\uffff]*)?\$")
VARIABLE = re.compile(r""":(?:(\w+)|'(\w+)'|"(\w+)"|\{\?(\w+)\})""")


@dataclass
class Statement:
    """Text for the server. `ended` is the backslash command that sent it, if no semicolon did."""

    line: int
    sql: str
    ended: str = ""


@dataclass
class Command:
    """A backslash command with its arguments as they stand."""

    line: int
    name: str
    arguments: str


class Reader:
    """One script."""

    def __init__(self, text: str, variables: dict[str, str]):
        self.text = text
        self.at = 0
        self.variables = variables

    def line(self) -> int:
        """The number of the line that is read now."""
        return self.text.count("\n", 0, self.at) + 1

    def next(self) -> Statement | Command | None:
        """The next thing that psql does."""
        text, out, depth, words, atomic = self.text, [], 0, [], 0
        begun = None
        while self.at < len(text):
            here = text[self.at]
            if begun is None and not here.isspace() and not text.startswith("--", self.at):
                begun = self.line()
            if text.startswith("--", self.at):
                self.at = self._end_of_line()
                continue
            if text.startswith("/*", self.at):
                end = self._comment()
                out.append(text[self.at : end])
                self.at = end
                continue
            if here in "'\"":
                escapes = here == "'" and self.at > 0 and text[self.at - 1] in "eE" and not (
                    self.at > 1 and (text[self.at - 2].isalnum() or text[self.at - 2] == "_")
                )  # fmt: skip
                end = self._quoted(here, escapes)
                out.append(text[self.at : end])
                self.at = end
                continue
            if here == "$" and (found := DOLLAR.match(text, self.at)):
                end = text.find(found[0], found.end())
                end = len(text) if end < 0 else end + len(found[0])
                out.append(text[self.at : end])
                self.at = end
                continue
            if here == ":" and not text.startswith("::", self.at) and not text.startswith(":=", self.at):
                if found := VARIABLE.match(text, self.at):
                    value = self._value(found)
                    if value is not None:
                        out.append(value)
                        self.at = found.end()
                        continue
            elif here == ":":
                out.append(text[self.at : self.at + 2])
                self.at += 2
                continue
            if here in "([":
                depth += here == "("
            elif here == ")":
                depth = max(0, depth - 1)
            elif here == "\\":
                if text.startswith("\\;", self.at):
                    out.append(";")
                    self.at += 2
                    words, depth = [], 0
                    continue
                if "".join(out).strip() == "":
                    return self._command()
                command = self._command()
                if command.name in ("g", "gx", "gset", "gexec", "gdesc", "crosstabview", "watch"):
                    return Statement(begun or command.line, "".join(out).strip(), f"{command.name} {command.arguments}".strip())
                if command.name == "r":
                    out, words, depth, atomic, begun = [], [], 0, 0, None
                continue
            elif here == ";" and depth == 0 and atomic == 0:
                self.at += 1
                sql = "".join(out).strip()
                if sql:
                    return Statement(begun or self.line(), sql)
                out, words, begun = [], [], None
                continue
            elif found := IDENTIFIER.match(text, self.at):
                word = found[0].lower()
                if len(words) < 4:
                    words.append(word)
                routine = words[:1] == ["create"] and ({"function", "procedure"} & set(words[1:4]))
                if routine and depth == 0:
                    if word == "begin" or (word == "case" and atomic):
                        atomic += 1
                    elif word == "end" and atomic:
                        atomic -= 1
                out.append(found[0])
                self.at = found.end()
                continue
            out.append(here)
            self.at += 1
        rest = "".join(out).strip()
        return Statement(begun or self.line(), rest) if rest else None

    def data(self) -> list[str]:
        """The lines of a COPY FROM STDIN that was just sent, up to the one that ends them."""
        if self.text[self.at : self._end_of_line()].strip() == "":
            self.at = self._end_of_line() + 1
        lines = []
        while self.at < len(self.text):
            end = self._end_of_line()
            line = self.text[self.at : end]
            self.at = end + 1
            if line == "\\.":
                break
            lines.append(line)
        return lines

    def skip_to_end_of_line(self) -> None:
        """Passes over the rest of a line."""
        self.at = self._end_of_line()

    def expand(self, arguments: str) -> list[str]:
        """The arguments of a backslash command: quotes taken off, variables put in."""
        found, at = [], 0
        while at < len(arguments):
            if arguments[at].isspace():
                at += 1
                continue
            word = ""
            while at < len(arguments) and not arguments[at].isspace():
                if arguments[at] == "'":
                    end = at + 1
                    while end < len(arguments) and arguments[end] != "'":
                        end += 2 if arguments[end] == "\\" else 1
                    word += re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), arguments[at + 1 : end])
                    at = end + 1
                elif arguments[at] == '"':
                    end = arguments.find('"', at + 1)
                    end = len(arguments) if end < 0 else end
                    word += arguments[at : end + 1]
                    at = end + 1
                elif (variable := VARIABLE.match(arguments, at)) and (value := self._value(variable)) is not None:
                    word += value
                    at = variable.end()
                else:
                    word += arguments[at]
                    at += 1
            found.append(word)
        return found

    def _value(self, found) -> str | None:
        plain, literal, name, whether = found.groups()
        if whether:
            return "TRUE" if whether in self.variables else "FALSE"
        value = self.variables.get(plain or literal or name)
        if value is None or plain:
            return value
        if literal:
            return "'" + value.replace("'", "''") + "'"
        return '"' + value.replace('"', '""') + '"'

    def _end_of_line(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _comment(self) -> int:
        depth, at = 0, self.at
        while at < len(self.text):
            if self.text.startswith("/*", at):
                depth, at = depth + 1, at + 2
            elif self.text.startswith("*/", at):
                depth, at = depth - 1, at + 2
                if depth == 0:
                    return at
            else:
                at += 1
        return at

    def _quoted(self, quote: str, escapes: bool) -> int:
        standard = self.variables.get("standard_conforming_strings", "on") == "on"
        at = self.at + 1
        while at < len(self.text):
            if self.text[at] == "\\" and quote == "'" and (escapes or not standard):
                at += 2
            elif self.text[at] == quote:
                return at + 1
            else:
                at += 1
        return at

    def _command(self) -> Command:
        line = self.line()
        found = re.compile(r"\\([a-zA-Z!?]+\+?|[^\s])?").match(self.text, self.at)
        self.at = found.end()
        end = self._end_of_line()
        rest = self.text[self.at : end]
        # Another command may stand on the same line, but not behind a quoted backslash.
        cut = re.search(r"\\\\|(?<=\s)\\(?=[a-z])", re.sub(r"'[^']*'", lambda m: "x" * len(m[0]), rest))
        if cut and found[1] not in ("copy", "!", "echo", "qecho"):
            self.at += cut.end() if cut[0] == "\\\\" else cut.start()
            return Command(line, found[1] or "", rest[: cut.start()].strip())
        self.at = end
        return Command(line, found[1] or "", rest.strip())

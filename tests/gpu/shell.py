"""Read the simple commands out of a Bash script, well enough for the scripts of this repository.

Words keep their `${…}`; what stands in `$(…)` and `<(…)` is read as commands of its own. Arrays are read as words, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

BREAKS = ";&|()\n"
KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "fi", "done", "esac"}
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=")


@dataclass
class Command:
    """One command, or the words of an array: `name` is the array's then."""

    words: tuple[str, ...]
    function: str
    """The function in which it stands, or nothing."""
    line: int
    array: str = ""


@dataclass
class _Reader:
    text: str
    at: int = 0
    function: str = ""
    depth: int = 0
    found: list[Command] = field(default_factory=list)
    heredocs: list[tuple[str, bool]] = field(default_factory=list)

    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def commands(self, nested: bool) -> None:
        """Up to the end, or to the `)` that ends a substitution."""
        words: list[str] = []
        cases = 0
        start = self.line()
        while self.at < len(self.text):
            char = self.peek()
            if self._skipped(char, words) or self._special(words):
                continue
            if char in BREAKS:
                self._put(words, start)
                self.at += 1
                if char == ")" and nested and not cases:
                    return
                if char == "\n":
                    self._bodies()
                start = self.line()
                continue
            if not words:
                start = self.line()
            word = self.word()
            cases += {"case": not words, "esac": -1}.get(word, 0)
            if _ASSIGNMENT.match(word) and word.endswith("=") and self.peek() == "(":
                self.at += 1
                self._array(word.split("=")[0].rstrip("+"))
            else:
                words.append(word)
                self._braces(words)
        self._put(words, start)

    def _put(self, words: list[str], start: int) -> None:
        kept = list(words)
        while kept and kept[0] in KEYWORDS:
            kept.pop(0)
        if kept:
            self.found.append(Command(tuple(kept), self.function, start))
        words.clear()

    def _skipped(self, char: str, words: list[str]) -> bool:
        """What is no word: blanks, comments, continued lines, arithmetic."""
        if char in " \t\r":
            self.at += 1
        elif self.peek(2) == "\\\n":
            self.at += 2
        elif char == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n;(&|"):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif self.peek(2) == "((" and not words:
            self._arithmetic()
        else:
            return False
        return True

    def _special(self, words: list[str]) -> bool:
        """Heads of functions, text that is given, and what runs in a substitution of a file."""
        if self.peek(2) == "()" and len(words) == 1:
            self.function, self.depth = words.pop(), 0
            self.at += 2
        elif self.peek(3) == "<<<":
            self.at += 3
        elif self.peek(2) == "<<":
            self._heredoc()
        elif self.peek(2) in ("<(", ">("):
            self.at += 2
            self.commands(nested=True)
            words.append("<()")
        else:
            return False
        return True

    def _braces(self, words: list[str]) -> None:
        if all(word in KEYWORDS for word in words):
            self.depth += {"{": 1, "}": -1}.get(words[-1], 0)
            if words[-1] == "}" and self.depth <= 0:
                self.function = ""

    def _array(self, name: str) -> None:
        words: list[str] = []
        start = self.line()
        while self.at < len(self.text):
            char = self.peek()
            if char in " \t\n":
                self.at += 1
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif char == "#":
                self.at = self.text.find("\n", self.at)
            elif char == ")":
                self.at += 1
                break
            else:
                before = self.at
                words.append(self.word())
                if self.at == before:  # a character that ends words elsewhere
                    self.at += 1
        self.found.append(Command(tuple(words), self.function, start, name))

    def _arithmetic(self) -> None:
        depth = 0
        while self.at < len(self.text):
            char = self.peek()
            self.at += 1
            depth += {"(": 1, ")": -1}.get(char, 0)
            if depth == 0:
                return

    def _heredoc(self) -> None:
        self.at += 2
        quoted = self.peek() == "-"
        self.at += int(quoted)
        word = self.word()
        self.heredocs.append((word.strip("\"'"), quoted))

    def _bodies(self) -> None:
        for end, tabs in self.heredocs:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == end:
                    break
        self.heredocs = []

    def word(self) -> str:
        out: list[str] = []
        while self.at < len(self.text):
            char = self.peek()
            if char in " \t\n;|()" or (char == "&" and not (out and out[-1][-1:] in "<>") and self.peek(2) != "&>"):
                break
            out.append(self._piece(char))
        return "".join(out)

    def _piece(self, char: str) -> str:
        if char == "\\":
            self.at += 2
            return self.text[self.at - 1 : self.at].replace("\n", "")
        if char == "'":
            end = self.text.index("'", self.at + 1)
            text, self.at = self.text[self.at + 1 : end], end + 1
            return text
        if self.peek(2) == "$'":
            end = self.at + 2
            while self.text[end] != "'":
                end += 2 if self.text[end] == "\\" else 1
            text, self.at = self.text[self.at + 2 : end], end + 1
            return text
        if char == '"':
            return self._quoted()
        if char == "$":
            return self._dollar()
        self.at += 1
        return char

    def _quoted(self) -> str:
        out: list[str] = []
        self.at += 1
        while self.peek() != '"':
            if self.at >= len(self.text):
                raise ValueError("a quote without an end")
            if self.peek() == "\\":
                out.append(self.text[self.at + 1 : self.at + 2].replace("\n", ""))
                self.at += 2
            elif self.peek() == "$":
                out.append(self._dollar())
            else:
                out.append(self.peek())
                self.at += 1
        self.at += 1
        return "".join(out)

    def _dollar(self) -> str:
        if self.peek(3) == "$((":
            start = self.at
            self.at += 1
            self._arithmetic()
            return self.text[start : self.at]
        if self.peek(2) == "$(":
            self.at += 2
            self.commands(nested=True)
            return "$()"
        if self.peek(2) == "${":
            start, depth = self.at, 0
            while self.at < len(self.text):
                char = self.peek()
                if self.peek(2) == "$(":
                    self._dollar()
                    continue
                if char == "\\":
                    self.at += 1
                elif char in "\"'" and depth:
                    closing = self.text.find(char, self.at + 1)
                    if 0 < closing < self.text.find("}", self.at):
                        self.at = closing
                depth += {"{": 1, "}": -1}.get(char, 0)
                self.at += 1
                if char == "}" and depth == 0:
                    break
            return self.text[start : self.at]
        match = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[@*#?$!0-9-])").match(self.text, self.at)
        if match:
            self.at = match.end()
            return "${" + match.group(1) + "}"
        self.at += 1
        return "$"


def commands_of(text: str) -> list[Command]:
    """All commands of a script, in order, those of substitutions before the command that they are part of."""
    reader = _Reader(text)
    reader.commands(nested=False)
    written = (word.partition("=") for command in reader.found for word in command.words if _ASSIGNMENT.match(word))
    held = {f"${{{name}}}": value for name, _, value in written}
    inner = [
        Command(command.words, outer.function, outer.line, command.array)
        for outer in reader.found
        for word in _given_to_a_shell(outer.words)
        for command in commands_of(held.get(word, word))
    ]
    return reader.found + inner


def _given_to_a_shell(words: tuple[str, ...]) -> list[str]:
    """The scripts in `bash -c SCRIPT`, or the variables that hold one."""
    if not any(word.rsplit("/", 1)[-1] in ("bash", "sh") for word in words):
        return []
    return [words[place + 1] for place, word in enumerate(words[:-1]) if word == "-c"]


def constants_of(found: list[Command]) -> dict[str, str]:
    """`NAME=value` of assignments and declarations; arrays joined by commas. A name with two values has none."""
    values: dict[str, str] = {}
    others: set[str] = set()
    for command in found:
        if command.array:
            values[command.array] = ",".join(command.words)
            continue
        for word in command.words:
            if not _ASSIGNMENT.match(word):
                if word in ("local", "readonly", "declare", "export", "-r", "-a", "-ra"):
                    continue
                break
            name, _, value = word.partition("=")
            if "$" in value or values.setdefault(name, value) != value:
                others.add(name)
    return {name: value for name, value in values.items() if name not in others}

"""Bicep text → tokens. Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/file"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .values import EvaluationError

Kind = Literal["name", "number", "string", "mark", "newline", "end"]
_SPACE = re.compile(r"(?:[ \t\r]+|//[^\n]*|/\*.*?\*/|#(?:disable|restore)-[^\n]*)+", re.DOTALL)
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MARKS = (
    "...", "=>", "??", "||", "&&", "==", "!=", "<=", ">=", "::", ".?", "[?",
    *"(){}[]<>=?:.,@!+-*/%|",
)  # fmt: skip
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "'": "'", "\\": "\\", "$": "$"}


@dataclass(frozen=True)
class Token:
    """One token; a string has its pieces, texts and the tokens of interpolated expressions in turn."""

    kind: Kind
    text: str
    line: int
    pieces: tuple[str | tuple[Token, ...], ...] = ()


def tokens(text: str) -> tuple[Token, ...]:
    """All tokens, the last of the kind `end`."""
    return tuple(_Lexer(text).until(""))


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.place) + 1

    def until(self, end: str) -> list[Token]:
        """Tokens up to the mark that closes an interpolation, or up to the end of the text."""
        found: list[Token] = []
        depth = 0
        while True:
            if space := _SPACE.match(self.text, self.place):
                self.place = space.end()
            if self.place == len(self.text):
                if end:
                    raise EvaluationError(f"line {self.line}: an interpolation has no end")
                return [*found, Token("end", "", self.line)]
            token = self._one()
            if end and token.kind == "mark":
                if token.text == end and depth == 0:
                    return [*found, Token("end", "", self.line)]
                depth += {"{": 1, "}": -1}.get(token.text, 0)
            found.append(token)

    def _one(self) -> Token:
        line = self.line
        if self.text[self.place] == "\n":
            self.place += 1
            return Token("newline", "\n", line)
        if self.text.startswith("'''", self.place):
            return self._block(line)
        if self.text[self.place] == "'":
            self.place += 1
            return Token("string", "", line, self._pieces())
        for kind, pattern in (("number", _NUMBER), ("name", _NAME)):
            if found := pattern.match(self.text, self.place):
                self.place = found.end()
                return Token(kind, found[0], line)  # type: ignore[arg-type]
        for mark in _MARKS:
            if self.text.startswith(mark, self.place):
                self.place += len(mark)
                return Token("mark", mark, line)
        raise EvaluationError(f"line {line}: {self.text[self.place : self.place + 20]!r} is not known")

    def _block(self, line: int) -> Token:
        end = self.text.find("'''", self.place + 3)
        if end < 0:
            raise EvaluationError(f"line {line}: a text has no end")
        content = self.text[self.place + 3 : end]
        self.place = end + 3
        return Token("string", "", line, (content.removeprefix("\n"),))

    def _pieces(self) -> tuple[str | tuple[Token, ...], ...]:
        pieces: list[str | tuple[Token, ...]] = []
        content = ""
        while True:
            character = self.text[self.place : self.place + 1]
            if character in ("", "\n"):
                raise EvaluationError(f"line {self.line}: a text has no end")
            self.place += 1
            if character == "'":
                return (*pieces, content)
            if character == "\\":
                content += self._escape()
            elif character == "$" and self.text[self.place] == "{":
                self.place += 1
                pieces += [content, tuple(self.until("}"))]
                content = ""
            else:
                content += character

    def _escape(self) -> str:
        if found := re.compile(r"u\{([0-9A-Fa-f]+)\}").match(self.text, self.place):
            self.place = found.end()
            return chr(int(found[1], 16))
        character = self.text[self.place]
        if character not in _ESCAPES:
            raise EvaluationError(f"line {self.line}: the escape \\{character} is not known")
        self.place += 1
        return _ESCAPES[character]

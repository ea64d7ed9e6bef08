"""Errors of the YAML parser in our words, at the place where the author has to look."""

from __future__ import annotations

from typing import Protocol

from ...problems.problem import Place, Problem, Related
from .rules import Syntax


class Mark(Protocol):
    """A place as PyYAML gives it; all three count characters from 0."""

    line: int
    column: int
    index: int


_SPECIAL = "@`%"
_QUOTE_IT = "put the whole value into quotes"


def syntax_problem(error: Exception, lines: tuple[str, ...]) -> Problem:
    found = str(getattr(error, "problem", None) or error).strip()
    mark: Mark | None = getattr(error, "problem_mark", None)
    context: Mark | None = getattr(error, "context_mark", None)
    if mark is None:
        return Syntax.problem((), f"this is not valid YAML ({found})", place=Place(1, 1, 1))
    return _Sentence(found, mark, context or mark, lines).problem()


class _Sentence:
    """One error: what the parser says (`found`), where it noticed, and where the construct began (`context`)."""

    def __init__(self, found: str, mark: Mark, context: Mark, lines: tuple[str, ...]) -> None:
        self.found = found
        self.mark = mark
        self.context = context
        self.lines = lines

    def problem(self) -> Problem:
        """The first reading that fits; the parser's own words only when none does."""
        for reading in (
            self._tab,
            self._quote,
            self._colon,
            self._indentation,
            self._brackets,
            self._sign,
            self._other,
        ):
            problem = reading()
            if problem is not None:
                return problem
        return self._say(f"this is not valid YAML ({self.found})", self.mark)

    # ------------------------------------------------------------ readings

    def _tab(self) -> Problem | None:
        line = self._line(self.mark)
        if "tab character" not in self.found and line[self.mark.column : self.mark.column + 1] != "\t":
            return None
        return self._say(
            "a tab is used for indentation; YAML allows only spaces there", self.mark, "replace the tab with spaces"
        )

    def _quote(self) -> Problem | None:
        if "escape" in self.found:
            hint = "double the backslash, or use single quotes, in which it has no meaning"
            return self._say(
                "a backslash in double quotes begins an escape that YAML does not know", self._backslash(), hint
            )
        begins = self._line(self.context)[self.context.column : self.context.column + 1]
        if begins not in {'"', "'"} or not ("end of stream" in self.found or "document indicator" in self.found):
            return None
        return self._say(f"the quote that opens here is never closed: no second {begins} follows", self.context)

    def _colon(self) -> Problem | None:
        if "mapping values are not allowed" in self.found:
            line = self._line(self.mark)
            before = line[: self.mark.column]
            if ": " in before or before.rstrip().endswith((":", "}", "]")):
                return self._say(
                    "a second ':' follows on the same line", self.mark, f"{_QUOTE_IT} if the colon belongs to it"
                )
            above = next((line for line in reversed(self.lines[: self.mark.line]) if line.strip()), "")
            if len(above) - len(above.lstrip()) >= len(line) - len(line.lstrip()):
                message = "the text in the lines above this key is neither a key with ':' nor a list item"
                return self._say(message, self._text_start(), end=self.mark.column)
            return self._say(
                "this key is indented deeper than the line above it, which is already complete",
                self._text_start(),
                "give it the indentation of its section, or end the line above with ':'",
                end=self.mark.column,
            )
        if "could not find expected ':'" in self.found:
            return self._say("this line is neither a key with ':' nor a list item with '- '", self.context, whole=True)
        return None

    def _indentation(self) -> Problem | None:
        before = self._line(self.mark)[: self.mark.column].strip(" -")
        if "expected key" in self.found or "<block end>" in self.found:
            if before:
                return self._say("text follows after the end of the value", self.mark, _QUOTE_IT, whole=True)
            if self._line(self.mark)[self.mark.column :].startswith(("- ", "-\n")):
                message = "this list item is among the keys of a mapping, or is not indented like its list"
            elif self._line(self.mark)[self.mark.column :].startswith(":"):
                return self._say("a ':' without a key before it", self.mark)
            elif self.mark.line >= len(self.lines):
                return None
            else:
                message = "this line is not indented like the keys of its section"
            return self._say(
                message, self.mark, "indent it like its neighbours", whole=True, opened="the section begins here"
            )
        if "expected '-'" in self.found:
            message = "this line is in the column of a list, but is not a list item"
            return self._say(message, self.mark, "begin it with '- ', or change its indentation", whole=True,
                             opened="the list begins here")  # fmt: skip
        if "entries are not allowed" in self.found:
            message = "a list item cannot begin here"
            return self._say(message, self.mark, "put the list into the lines below the key, or the text into quotes")
        return None

    def _brackets(self) -> Problem | None:
        line = self._line(self.mark)
        dollar = line.rfind("${", 0, self.mark.column + 1)
        if "',' or '" in self.found and dollar >= 0 and line[dollar - 1 : dollar] not in {'"', "'"}:
            hint = 'write "${NAME}", with the quotes'
            return self._say("a variable between brackets needs quotes, because its '{' means a mapping there",
                             _At(self.mark.line, dollar), hint)  # fmt: skip
        for closing, kind in (("]", "list"), ("}", "mapping")):
            if f"',' or '{closing}'" in self.found:
                opening = "[" if closing == "]" else "{"
                return self._say(
                    f"the {kind} that '{opening}' opens here is not closed by '{closing}', or lacks a comma before "
                    f"line {self.mark.line + 1}, column {self.mark.column + 1}",
                    self.context,
                )
        if "node content" not in self.found:
            return None
        sign = self._line(self.mark)[self.mark.column : self.mark.column + 1]
        if sign in {"]", "}"}:
            return self._say(f"'{sign}' closes something that was not opened", self.mark)
        if sign == ",":
            return self._say("a value is missing before ','", self.mark)
        if self.mark.line >= len(self.lines) or not sign:
            return self._say("the file ends where a value is expected", self.context)
        return self._say("a value is expected here", self.mark)

    def _sign(self) -> Problem | None:
        sign = self._line(self.mark)[self.mark.column : self.mark.column + 1]
        if "cannot start any token" in self.found:
            known = sign in _SPECIAL
            return self._say(f"a value cannot begin with '{sign}'", self.mark, _QUOTE_IT if known else None)
        if "alphabetic or numeric" in self.found:
            sign = self._line(self.context)[self.context.column : self.context.column + 1]
            meaning = "an alias" if sign == "*" else "an anchor"
            return self._say(
                f"'{sign}' at the beginning of a value means {meaning}, but no name follows", self.context, _QUOTE_IT
            )
        if "tag" in self.found:
            return self._say(
                "'!' at the beginning of a value means a tag, but no known one follows", self.context, _QUOTE_IT
            )
        if "comment or line break" in self.found or "chomping" in self.found:
            sign = self._line(self.context)[self.context.column : self.context.column + 1]
            return self._say(f"'{sign}' begins a text of several lines, which starts on the next line", self.context,
                             f"{_QUOTE_IT} if the character belongs to it")  # fmt: skip
        return None

    def _other(self) -> Problem | None:
        if "document start" in self.found:
            return self._say(
                "the document has ended before this line", self.mark, "remove '...', or the lines after it", whole=True
            )
        if "directive" in self.found or "incompatible YAML" in self.found:
            message = "a line that begins with '%' is an instruction to the YAML reader, and this one is not known"
            return self._say(message, self.context, whole=True)
        return None

    # ------------------------------------------------------------ places

    def _say(
        self,
        message: str,
        mark: Mark,
        hint: str | None = None,
        *,
        end: int | None = None,
        whole: bool = False,
        opened: str = "",
    ) -> Problem:
        related: tuple[Related, ...] = ()
        if opened and self.context.line != mark.line:
            related = (Related(opened, place=self._place(self.context)),)
        return Syntax.problem((), message, hint, place=self._place(mark, end, whole=whole), related=related)

    def _place(self, mark: Mark, end: int | None = None, *, whole: bool = False) -> Place:
        if mark.line >= len(self.lines) and self.lines:
            # The parser noticed at the end of the file; the last line shows more than an empty one.
            last = len(self.lines)
            return Place(last, len(self.lines[-1]) + 1, len(self.lines[-1]) + 1)
        if whole:
            end = max(mark.column + 1, len(self._line(mark).rstrip()))
        return Place(mark.line + 1, mark.column + 1, (mark.column + 1 if end is None else end) + 1)

    def _line(self, mark: Mark) -> str:
        return self.lines[mark.line] if mark.line < len(self.lines) else ""

    def _text_start(self) -> Mark:
        line = self._line(self.mark)
        return _At(self.mark.line, len(line) - len(line.lstrip(" ")))

    def _backslash(self) -> Mark:
        """The two parsers point at the backslash or at the letter after it."""
        line, column = self._line(self.mark), self.mark.column
        if line[column : column + 1] != "\\" and column and line[column - 1] == "\\":
            return _At(self.mark.line, column - 1)
        return self.mark


class _At:
    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
        self.index = -1

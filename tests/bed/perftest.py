"""The table of perftest, which every fake of `ib_write_bw` prints.

Source: linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT_G and REPORT_FMT, the same in 2020 and in 2026), and
the binary of Debian's package 4.5+0.17.
"""

from __future__ import annotations

import re

HEADER = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
REPORT_FMT = r" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f"
"""With `%d` and `%f` for the `%lu` and `%lf` of C, so that Bash and Perl take it, too."""
_ROW = re.compile(r"^ [0-9]+[ \t]")


def shell(size: int, average: str, iterations: int = 5000) -> str:
    """Return lines of Bash that print the table with one row; `average` is a word of Bash, in Gb/s."""
    return f"printf '{HEADER}\\n'\nprintf '{REPORT_FMT}\\n' {size} {iterations} {average} {average} 0.002935\n"


def rows(output: str) -> list[tuple[str, str]]:
    """Return each row of the output, and what perftest prints for the numbers in it."""
    return [(line, _printed(line)) for line in output.splitlines() if _ROW.match(line)]


def _printed(line: str) -> str:
    size, iterations, peak, average, rate = line.split()
    fields = int(size), int(iterations), float(peak), float(average), float(rate)
    return REPORT_FMT.replace(r"\t", "\t") % fields

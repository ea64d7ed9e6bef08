"""A log that a user has filled neither hides a fault nor takes a node out of service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed import kernel_log
from tests.projects.test_health_xids import Root
from tests.projects.test_kernel_log import DRIVER, GPU, SWITCH
from tests.projects.xids import AWKS, T0, log, read, xid

FLOOD = "tmpfs: Unknown parameter 'zz'"
"""What any user makes the kernel print without limit. Source: Linux fs/fs_context.c"""
PROBED = (
    "NVRM: The NVIDIA GPU 0000:77:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)
# journalctl as far as it is asked: the records from a cursor on; `piece` of them and a part of the next one, then it is
# cut off. 124 is the code of timeout. A cursor that is not there: systemd's words.
JOURNALCTL = r"""
from=""
for word in "$@"; do if [[ "${word}" == --cursor=* ]]; then from="${word#*=}"; fi; done
at=1
if [[ -n "${from}" ]]; then
    at="$(grep --line-number --fixed-strings --max-count=1 "\"${from}\"" "${FOLDER}/journal")"
    at="${at%%:*}"
    if [[ -z "${at}" ]]; then echo "Failed to seek to cursor: Invalid argument" >&2; exit 1; fi
fi
tail --lines="+${at}" "${FOLDER}/journal" | awk -v piece="${PIECE}" '
    NR <= piece { print; next }
    { printf "%s", substr($0, 1, 60); cut = 1; exit }
    END { exit cut ? 124 : 0 }'
"""


class Flooded(Root):
    """A node whose journal is read in pieces of so many records."""

    def written(self, *lines: str, piece: int = 1_000_000) -> None:
        records = log(*lines).splitlines()
        assert len(records) == len(lines)
        text = "".join(f"{each.replace('i=1c3', f'i={place:x}')}\n" for place, each in enumerate(records))
        (self.folder / "journal").write_text(text)
        settings = f"FOLDER={self.folder} PIECE={piece}\n"
        self.fake("journalctl", settings + JOURNALCTL)

    def asked(self) -> list[str]:
        """Calls of journalctl since the last question."""
        file = self.folder / "calls"
        calls = [line for line in file.read_text().splitlines() if line.startswith("journalctl")]
        file.unlink()
        return calls


@pytest.fixture
def node(tmp_path: Path) -> Flooded:
    return Flooded(tmp_path)


LONG = "the kernel log is too long to be read at once"


def test_a_fault_behind_a_flood_is_found_in_pieces(node: Flooded) -> None:
    node.written(*[FLOOD] * 4500, xid(79), *[FLOOD] * 300, piece=2000)
    assert node.check() == [("pass", "0", LONG, "")]
    assert node.check() == [("pass", "0", LONG, "")]
    (verdict, words, _, cure), *more = node.check()
    assert (verdict, words.split(" on ")[0], cure, more) == (
        "fail", "XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "service", [],
    )  # fmt: skip
    calls = node.asked()
    assert ["--cursor=" in call for call in calls] == [False, True, True]
    assert node.check()[0][:2] == (verdict, words), "found for the whole boot"


@pytest.mark.parametrize("piece", [13, 14, 19, 36])
def test_no_record_is_left_out_between_two_pieces(node: Flooded, piece: int) -> None:
    """Faults stand at every place where a piece can end, and one of three records."""
    codes = [48, 62, 74, 92, 94, 95, 109, 119, 120, 123, 140, 143]
    lines = [FLOOD] * 10
    for code in codes:
        lines += [xid(code), FLOOD]
    lines += [*PROBED, *[FLOOD] * 5, xid(46, bus=0x9B), "x"]
    node.written(*lines, piece=10_000)
    whole = {(row[0], row[1], row[3]) for row in node.check()}
    assert len(whole) > 8
    node.past.unlink()
    node.written(*lines, piece=piece)
    for _ in range(8):
        found = {(row[0], row[1], row[3]) for row in node.check()}
    assert found == whole


def test_lines_of_one_fault_in_two_pieces_are_counted_together(node: Flooded) -> None:
    node.written(*[f"+{place} {xid(119)}" for place in range(30)], piece=20)
    for _ in range(4):
        found = node.check()
    assert [row[1] for row in found] == ["XID 119 GSP_RPC_TIMEOUT on GPU 0 (PCI 0000:01:00), 30 times"]


def test_what_the_driver_said_before_is_kept(node: Flooded) -> None:
    """The reason of a GPU that nvidia-smi does not list names it."""
    said = "NVRM: GPU 0000:77:00.0: RmInitAdapter failed! (0x62:0x40:2477)"
    node.written(said, *[FLOOD] * 40, piece=30)
    for _ in range(3):
        node.check()
    kept = node.past.read_text()
    assert "said\t0000:77:00\tRmInitAdapter failed! (0x62:0x40:2477)" in kept
    assert "\nmark\tboot-1 0 " in kept


def test_a_second_part_of_a_message_is_no_fault_of_its_own(node: Flooded) -> None:
    switch = "nvidia-nvswitch0: SXid (PCI:0000:77:00.0): 20034, "
    first, second = f"{switch}Non-fatal, Link 30", f"{switch}Data {{0x1, 0x2}}"
    node.written(*[FLOOD] * 18, first, "x", second, *[FLOOD] * 20, piece=20)
    for _ in range(4):
        found = node.check()
    assert [row[0] for row in found] == ["warn"]


def test_a_short_log_is_read_whole_and_nothing_is_written(node: Flooded) -> None:
    node.written(*[FLOOD] * 1500)
    for _ in range(2):
        assert node.check() == [("pass", "0", "", "")]
    assert not node.past.exists()
    assert not any("--cursor" in call for call in node.asked())
    node.written(*[FLOOD] * 2500, xid(119))
    first = node.check()
    assert "--cursor" not in node.asked()[0]
    assert node.check() == first
    assert "--cursor" in node.asked()[0]


@pytest.mark.parametrize("change", ["boot", "repaired", "device", "cursor", "damaged"])
def test_a_mark_counts_only_for_what_it_was_made(node: Flooded, change: str) -> None:
    node.written(xid(119), *[FLOOD] * 2500)
    node.check()
    settings: dict[str, str] = {}
    if change == "boot":
        node.boot("boot-2")
    elif change == "repaired":
        settings["CYCLEFORGE_SINCE_S"] = "9"
    elif change == "device":
        node.device("0000:44:00.0")
    elif change == "cursor":
        node.written(xid(119), *[FLOOD] * 40)
    else:
        kept = node.past.read_text()
        node.past.write_text(kept.replace("mark\t", "mark\tx\t").replace("s=8f2c", "$(touch x) --file=/"))
    node.asked()
    found = node.check(**settings)
    assert [row[0] for row in found] == ["fail"]
    assert "--cursor" not in node.asked()[-1], "the whole boot"


def test_a_mark_is_noted_only_with_the_events_before_it(node: Flooded) -> None:
    node.written(xid(119), *[FLOOD] * 2500, piece=100)
    node.past.parent.parent.mkdir(parents=True)
    node.past.parent.write_text("")  # no folder
    for _ in range(2):
        assert [row[0] for row in node.check()] == ["fail"]
        assert not any("--cursor" in call for call in node.asked())


# ---------------------------------------------------------------- /dev/kmsg

# A read of /dev/kmsg fails with EPIPE where records were overwritten, and the next one goes on behind them.
# Source: Linux Documentation/ABI/testing/dev-kmsg
TORN = r"""
if (($# > 0)); then exec /bin/cat "$@"; fi
count=0
while IFS= read -r line; do
    printf '%s\n' "${line}"
    if [[ "${line}" == *"'torn'" ]]; then exit 1; fi
done
"""


@pytest.mark.parametrize("holes", [1, 3])
def test_a_log_that_loses_records_is_read_on_and_the_verdict_says_so(node: Flooded, holes: int) -> None:
    node.fake("journalctl", "exit 1")
    # Bash reads a file byte by byte where it can go back, so the next program goes on at the right place.
    node.fake("cat", TORN)
    torn = kernel_log.kmsg("Linux version 6.8", 0) + kernel_log.kmsg("tmpfs: Unknown parameter 'torn'", 1) * holes
    node.write("dev/kmsg", torn + kernel_log.kmsg(FLOOD, 2))
    assert node.check() == [("pass", "0", "the kernel log has lost records while it was read", "")]
    node.write("dev/kmsg", kernel_log.kmsg(xid(119), 100.5) + torn + kernel_log.kmsg(xid(119), 109))
    (found,) = node.check()
    assert found[:2] == ("fail", "XID 119 GSP_RPC_TIMEOUT on GPU 0 (PCI 0000:01:00), 2 times")


def test_the_reason_tells_what_was_wrong(node: Flooded) -> None:
    node.fake("journalctl", "exit 124")
    assert node.check() == [("not_measured", "", "the kernel log did not answer in time", "")]


# ---------------------------------------------------------------- records of nftables

# {prefix}: 127 bytes of a user's namespace, where net.netfilter.nf_log_all_netns is 1.
# Sources: Linux net/netfilter/nf_log_syslog.c, net/bridge/netfilter/ebt_log.c
PACKETS = (
    "{prefix}IN=lo OUT= MAC=00:00:00:00:00:00:00:00:00:00:00:00:08:00 SRC=127.0.0.1 DST=127.0.0.1 LEN=84 TOS=0x00 "
    "PREC=0x00 TTL=64 ID=5163 DF PROTO=ICMP TYPE=8 CODE=0 ID=1 SEQ=1 ",
    "{prefix}IN= OUT=lo SRC=0000:0000:0000:0000:0000:0000:0000:0001 "
    "DST=0000:0000:0000:0000:0000:0000:0000:0001 LEN=104 ",
    "{prefix}IN=br0 OUT= PHYSIN=veth0 MACSRC=02:00:00:00:00:01 MACDST=02:00:00:00:00:02 MACPROTO=88b5 ",
    "{prefix}IN=veth0 OUT= MAC=02:00:00:00:00:02:02:00:00:00:00:01:88:b5 ",
    "{prefix}IN=veth0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1",
    "{prefix}IN= OUT=veth0 TRUNCATED",
    "{prefix} IN=veth0 OUT= MAC source = 02:00:00:00:00:01 MAC dest = 02:00:00:00:00:02 proto = 0x88b5",
)


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("packet", PACKETS)
def test_a_record_of_nftables_is_no_event(packet: str, awk: str) -> None:
    made = [
        packet.format(prefix=prefix[:127]) for text in DRIVER for prefix in (text, f"{text}\n", f"{text} IN=a OUT=b ")
    ]
    assert read(log(*made), awk, devices=f"{GPU} {SWITCH}") == f"records\t{len(made)}\n"


@pytest.mark.parametrize("name", ["IN= OUT= SRC=a", "IN= OUT= MAC=", "IN= OUT= ", "IN=a OUT=b MAC=", "IN= OUT= ARP H"])
def test_a_program_with_the_name_of_a_packet_hides_no_fault(name: str) -> None:
    assert len(name) <= 15
    for code in (79, 119):
        assert f"\t{code}\t" in read(log(f"NVRM: Xid (PCI:{GPU}): {code}, pid=7, name={name}, x"), devices=GPU)


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("style", ["252", "239"])
def test_bytes_that_hold_a_word_of_the_driver_are_read(awk: str, style: kernel_log.Style) -> None:
    for text, code in ((f"NVRM: Xid (PCI:{GPU}): 119, name=\x01", 119), (f"{DRIVER[8]} \udcff", 20034)):
        made = kernel_log.record(text, T0, style=style) + "\n"
        assert '"MESSAGE":[' in made.replace(" ", "")
        assert f"\t{code}\t" in read(made, awk, devices=f"{GPU} {SWITCH}")

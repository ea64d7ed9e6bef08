"""Every code asks for what the sources say, on each GPU generation; whatever the log holds, it is read or reported."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bed import kernel_log
from tests.projects.xids import AWKS, T0, cures, found, judge, log, read, xid


def codes(text: str) -> set[int]:
    """`1-3 7` as numbers."""
    ends = [part.split("-") for part in text.split()]
    return {code for end in ends for code in range(int(end[0]), int(end[-1]) + 1)}


# NVIDIA's catalogue R610 by its buckets, and what is done for each; V100 as the public lists have it.
NONE = codes("14 37 38 43 44 66 67 106-108 137")
APP = codes("8 11 13 25 31 32 39-41 60 68-72 75-77 80 82-86 88 89 96-105 126-135 139")
WARN = codes("63 78 92-94 121 141 142 157 160-166 168-170")
RESET = codes("46 48 62 74 95 109 110 119 120 136 140 143 155 156 158 159")
REBOOT, SERVICE, NVLINK5 = codes("151 167"), codes("54 64 79"), codes("144-150")
UNUSED = codes("1-7 9 10 12 15-24 26-30 33-36 42 47 49-53 55-59 61 65 73 81 87 90 91 111-118 122-125 138 152 153")
V100 = {48: "reset", 56: "warn", 57: "reset", 58: "reset", 61: "reset", 62: "reset", 63: "warn", 64: "service",
        65: "app", 73: "app", 74: "reset", 79: "service", 81: "warn", 92: "warn"}  # fmt: skip
# "Applies to" of the catalogue.
NOT_ON = {
    "a100": codes("96-105 110 121 126-136 139 141-151 155-157 159-167 169 170"),
    "h100": codes("93 121 126-135 139 142 144-150 155 159-166 170"),
    "gb200": codes("54 74 80 93 136"),
}


def expected(code: int, generation: str) -> str:
    """The cure of a lone line without a word; `app` and `none` are no finding."""
    if generation == "v100":
        return V100.get(code, "warn")
    if generation == "other" and code in UNUSED:
        return V100.get(code, "warn")
    if code in UNUSED or code in NOT_ON.get(generation, ()):
        return "warn"
    for cure, of in (("none", NONE), ("app", APP), ("reset", RESET), ("reboot", REBOOT), ("service", SERVICE)):
        if code in of:
            return cure
    return "reset" if code in (171, 172) else "warn"


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("generation", ["v100", "a100", "h100", "gb200", "other"])
def test_every_code_asks_for_what_the_sources_say(awk: str, generation: str) -> None:
    every = range(1, 173)
    judged = judge(read(log(*(xid(code, bus=code) for code in every if code != 154)), awk), generation, awk=awk)
    shown = dict.fromkeys(every, "none") | {code: "app" for code, _, _ in judged.programs}
    shown |= {each.code: each.cure for each in judged.findings}
    wanted = {code: expected(code, generation) for code in every} | {154: "none"}
    assert shown == wanted
    assert all(each.times == 1 and each.address == f"0000:{each.code:02x}:00" for each in judged.findings)


def test_no_code_is_left_out_above() -> None:
    lists = (NONE, APP, WARN, RESET, REBOOT, SERVICE, NVLINK5, UNUSED, {45, 154, 171, 172})
    assert sorted(code for each in lists for code in each) == list(range(1, 173))


# ---------------------------------------------------------------- lines


# src/nvidia/arch/nvalloc/unix/src/osapi.c (rm_is_supported_device) of NVIDIA/open-gpu-kernel-modules
OFF_AT_PROBE = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)  # fmt: skip


def test_forms_of_a_line() -> None:
    samples = {
        "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC "
        "response from GPU4 GSP! Expected function 76": ("0000:9b:00", 119),
        "NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 10, "
        "TPC 1, SM 1): Out Of Range Address": ("0000:38:00", 13),
        "NVRM: Xid (0000:03:00): 14, Channel 00000001": ("0000:03:00", 14),
        "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0)": ("0008:01:00", 149),
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.": ("0000:18:00", 79),
        "NVRM: GPU at 0000:18:00.0 has fallen off the bus.": ("0000:18:00", 79),
        "\n".join(OFF_AT_PROBE): ("0000:b3:00", 79),
        "NVRM: Xid (PCI:00000000:9B:00.0): 62, x": ("0000:9b:00", 62),
        "NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 31, pid=1": ("0000:9b:00", 31),
    }
    for line, (address, code) in samples.items():
        (event,) = read(log(line)).splitlines()[1:]
        assert event.split("\t")[4:7] == ["xid", address, str(code)], line


def test_nvswitch_lines_are_no_xids() -> None:
    lines = (
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030, 0x00000000}",
    )
    judged = judge(read(log(*lines)))
    assert cures(judged.findings) == {"SXid 12028": "warn", "SXid 20034": "reboot"}
    assert [each.times for each in judged.findings] == [1, 1], "the line of data goes on with the one before it"


@pytest.mark.parametrize(("code", "word", "cure"), [
    (12028, "Non-fatal", "warn"), (12028, "Fatal", "reboot"), (20034, "Non-fatal", "warn"), (20034, "Data {", "reboot"),
    (12028, "Data {", "warn"), (19084, "Non-fatal", "reboot"), (23001, "Non-fatal", "reboot"),
    (10001, "Fatal", "reboot"), (99999, "Fatal", "reboot"), (99999, "Non-fatal", "warn"), (99999, "x", "warn"),
])  # fmt: skip
def test_an_sxid_goes_by_its_word_and_the_lists(code: int, word: str, cure: str) -> None:
    line = f"nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): {code}, {word}, Link 30"
    assert found(line) == {f"SXid {code}": cure}
    assert found(line, generation="gb200") == {f"SXid {code}": "warn"}, "no NVSwitch in such a VM"


def test_three_records_of_a_gpu_that_does_not_answer_are_one_fault() -> None:
    others = ["eth0: up", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  590.48.01"]
    assert found(OFF_AT_PROBE[0], others[0], OFF_AT_PROBE[1], others[1], OFF_AT_PROBE[2]) == {"79": "service"}
    for lines in (OFF_AT_PROBE[1:], OFF_AT_PROBE[:2], (OFF_AT_PROBE[0], OFF_AT_PROBE[2])):
        assert found(*lines) == {}, lines
    not_supported = "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:2330)"
    assert found(not_supported, *OFF_AT_PROBE[1:]) == {}


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:9b:00): GSP",
        "NVRM: Xid (PCI:0000:9b:00): 1234567, x",
        "NVRM: Xid (PCI:0000:9b:00",
        "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery changed",
    ],
)
def test_a_line_of_the_driver_that_cannot_be_read_warns(line: str) -> None:
    (finding,) = judge(read(log(line))).findings
    assert (finding.cure, line in finding.note) == ("warn", True)


def test_kmsg_counts_from_the_boot() -> None:
    text = kernel_log.kmsg("Linux version 6.8", 0) + kernel_log.kmsg("NVRM: Xid (PCI:0000:9b:00): 62, x", 12.345678)
    assert read(text, btime=T0).splitlines()[1].startswith(f"event\t{T0 + 12}\t{T0 + 12}\t1\txid\t0000:9b:00\t62")


# ---------------------------------------------------------------- what belongs together


def test_a_fault_of_140_lines_is_one_finding() -> None:
    lines = [f"+{place} {xid(119)}" for place in range(140)]
    (finding,) = judge(read(log(*lines)), now=T0 + 200).findings
    assert (finding.cure, finding.times, finding.first) == ("reset", 140, T0)


def test_findings_begin_with_the_worst() -> None:
    judged = judge(read(log(xid(92), xid(119, bus=2), xid(151, bus=3), xid(79, bus=4), xid(999, bus=5))))
    assert [each.cure for each in judged.findings] == ["service", "reboot", "reset", "warn", "warn"]


@pytest.mark.parametrize(("number", "words", "cure"), [
    ("0x1", "GPU Reset Required", "reset"), ("0x1", "PF FLR", "reset"), ("0x2", "Node Reboot Required", "reboot"),
    ("0x2", "OS Reboot", "reboot"), ("0x3", "Drain P2P", "warn"), ("0x4", "Drain and Reset", "reset"),
    ("0x5", "x", "reset"), ("0x6", "x", "reset"), ("0x7", "x", "reboot"), ("0x2", "GPU Reset Required", "reboot"),
    ("0x9", "x", "warn"),
])  # fmt: skip
def test_a_recovery_action_goes_by_its_number(number: str, words: str, cure: str) -> None:
    line = xid(154, f"GPU recovery action changed from 0x0 (None) to {number} ({words})")
    assert found(line) == {"154": cure}
    back = xid(154, f"GPU recovery action changed from {number} ({words}) to 0x0 (None)")
    assert found(line, f"+5 {back}") == {}
    assert found(line, f"+5 {back}", f"+6 {line}") == {"154": cure}


NVLINK = "NETIR_LINK_EVT  {}   XC0 i0 Link 01 (0x021425c6 0x00000000 0x0)"


@pytest.mark.parametrize("code", sorted(NVLINK5))
def test_nvlink5_goes_by_its_word_unless_a_recovery_action_says_more(code: int) -> None:
    action = xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    none = xid(154, "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)")
    for word, cure in (("Fatal", "reset"), ("Nonfatal", "warn")):
        line = xid(code, NVLINK.format(word))
        assert found(line, generation="gb200") == {str(code): cure}
        assert found(line, f"+30 {action}", generation="gb200")[str(code)] == "reboot"
        assert found(line, f"+31 {action}", generation="gb200")[str(code)] == cure
        assert found(line, action, f"+2 {none}", generation="gb200") == {str(code): "warn"}


def test_a_torn_down_channel_follows_another_fault_of_its_gpu() -> None:
    assert found(xid(45)) == {"45": "warn"}
    assert found(xid(45), xid(13)) == {}
    assert found(xid(45), xid(119)) == {"119": "reset"}
    assert found(xid(45), xid(13, bus=2)) == {"45": "warn"}
    assert found(xid(45), f"+31 {xid(13)}") == {"45": "warn"}


def test_details_of_a_double_bit_error_count_as_one() -> None:
    assert found(xid(171)) == {"171": "reset"}
    assert found(xid(48), xid(171), xid(63)) == {"48": "reset", "63": "warn"}


def test_a_row_remap_asks_for_more() -> None:
    events = read(log(xid(63), xid(94, bus=2), xid(48, bus=3), xid(157, bus=4)))
    judged = judge(events)
    assert (judged.needs, set(cures(judged.findings).values())) == ({"names", "rows"}, {"warn", "reset"})

    def rows(pending: str, failure: str) -> dict[str, str]:
        known = "".join(f"rows\t0000:0{bus}:00\t{pending}\t{failure}\n" for bus in range(1, 5))
        return cures(judge(known + events).findings)

    assert rows("No", "No") == {"63": "warn", "94": "warn", "48": "reset", "157": "warn"}
    assert rows("1", "0") == {"63": "reset", "94": "reset", "48": "reset", "157": "reset"}
    assert rows("Yes", "Yes") == {"63": "service", "94": "reset", "48": "service", "157": "service"}


# ---------------------------------------------------------------- history


@pytest.mark.parametrize(("line", "again_h"), [
    (xid(48), 168), (xid(74), 24), ("nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30", 24),
])  # fmt: skip
def test_the_second_time_within_its_window_asks_for_service(line: str, again_h: int) -> None:
    first = judge(read(log(line)))
    assert {each.cure for each in first.findings} <= {"reset", "reboot"}
    for seconds, cure in ((again_h * 3600, "service"), (again_h * 3600 + 1, None)):
        later = judge(first.past + read(log(line, at=T0 + seconds)), boot="b2", now=T0 + seconds + 9)
        assert [each.cure for each in later.findings] == [cure or first.findings[0].cure]
    soon = judge(first.past + read(log(line, at=T0 + 1)), boot="b2")
    assert [each.cure for each in soon.findings] == ["service"], "a boot lies between"
    assert cures(judge(read(log(line, f"+600 {line}"))).findings) == cures(first.findings), "one fault goes on"
    assert set(cures(judge(read(log(line, f"+601 {line}"))).findings).values()) == {"service"}


def test_another_gpu_is_not_the_second_time() -> None:
    first = judge(read(log(xid(48))))
    assert cures(judge(first.past + read(log(xid(48, bus=2), at=T0 + 9)), boot="b2").findings) == {"48": "reset"}


def test_a_boot_takes_a_fault_away_and_a_journal_that_forgets_does_not() -> None:
    first = judge(read(log(*(f"+{place} {xid(119)}" for place in range(9)))))
    assert judge(first.past, boot="b2").findings == []
    assert judge(first.past).findings == first.findings
    (finding,) = judge(first.past + read(log(f"+8 {xid(119)}", f"+9 {xid(119)}"))).findings
    assert (finding.first, finding.times) == (T0, 9), "its beginning is gone from the journal"


def test_what_was_before_the_repair_does_not_count() -> None:
    text = log(xid(79), f"+100 {xid(119)}")
    past = judge(read(text)).past
    assert cures(judge(past + read(text, since=T0 + 50), since=T0 + 50).findings) == {"119": "reset"}
    assert judge(past + read(text, since=T0 + 100), since=T0 + 100).findings == []


def test_old_history_goes_away() -> None:
    past = judge(read(log(xid(48), xid(119, bus=2), xid(13, bus=3)))).past
    assert past.count("\n") == 3
    assert judge(past, boot="b2", now=T0 + 8 * 24 * 3600).past == ""


def test_a_program_that_fails_warns_when_a_second_job_has_it_on_the_same_gpu() -> None:
    gpus = "gpu\t0\t0000:01:00\ngpu\t1\t0000:02:00\n"
    events = read(log(xid(31), xid(13, bus=2)))
    first = judge(gpus + events, job=101, job_gpus="0")
    assert (first.findings, sorted(first.programs)) == ([], [(13, "0000:02:00", 1), (31, "0000:01:00", 1)])
    again = read(log(xid(31), xid(13, bus=2), f"+3600 {xid(31)}"))
    same = judge(gpus + first.past + again, job=101, now=T0 + 3700)
    assert same.findings == [], "one job may fail as often as it likes"
    second = judge(gpus + first.past + again, job=102, job_gpus="0", now=T0 + 3700)
    assert [(each.cure, each.gpu, each.note) for each in second.findings] == [
        ("warn", "0", "programs of jobs 101 and 102 failed on it")
    ]
    late = judge(gpus + first.past + read(log(f"+86500 {xid(31)}")), job=102, job_gpus="0", now=T0 + 86600)
    assert late.findings == [], "a day lies between"
    early = judge(gpus + first.past + again, job=102, job_gpus="0", job_start=T0 + 3601, now=T0 + 3700)
    assert early.findings == [], "before the job"


def test_jobs_one_after_the_other_are_two() -> None:
    lines = [xid(31), f"+5 {xid(31)}"]
    first = judge(read(log(*lines)), job=101)
    lines.append(f"+6 {xid(31)}")
    events = read(log(*lines), past=first.past)
    assert events.count("event") == 2
    second = judge(first.past + events, job=102)
    assert [each.note for each in second.findings] == ["programs of jobs 101 and 102 failed on it"]
    third = judge(second.past + read(log(*lines), past=second.past), job=103)
    assert (third.past, third.findings) == (second.past, second.findings), "no new line, nothing for the third"
    assert judge(second.past, job=103).findings == second.findings


def test_warnings_end_and_faults_stay() -> None:
    events = read(log(xid(92), xid(119, bus=2)))
    assert cures(judge(events, now=T0 + 24 * 3600 + 1).findings) == {"119": "reset"}


# ---------------------------------------------------------------- anything

# The public pattern of an XID, and that of an SXid.
XID = re.compile(r"NVRM: Xid \(((?:PCI:)?[0-9a-fA-F:]+)\): (\d{1,6}),")
PIECES = st.sampled_from(
    ["NVRM: ", "Xid (", "SXid (", "PCI:0000:9b:00", "PCI:0008:01:00.0", "): ", "79, ", "119, ", "154, ", "12028, ",
     "Fatal", "Nonfatal, ", "Data {", "GPU recovery action changed from 0x0 (None) to 0x1", "nvidia-nvswitch0: ",
     "GPU 0000:18:00.0: ", "GPU has fallen off the bus.", "pid=1, name=", " ",
     "\t", "\x01", "é", "%s", "\\", "'", "$(x)", "-", "("]
)  # fmt: skip
NAMES = st.text(st.characters(codec="utf-8"), max_size=9)
LINES = st.lists(st.one_of(
    st.lists(PIECES, max_size=8).map("".join),
    st.builds(xid, st.integers(0, 10**7), NAMES),
    st.builds("nvidia-nvswitch1: SXid (PCI:0000:{:02x}:00.0): {}, {}, Link 3".format, st.integers(0, 255),
              st.integers(1, 99999), st.sampled_from(["Fatal", "Non-fatal", "Data {0x1}"])),
), max_size=30)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(lines=LINES, awk=st.sampled_from(AWKS), generation=st.sampled_from(["a100", "gb200", "other", "nonsense"]))
def test_whatever_the_log_holds(lines: list[str], awk: str, generation: str) -> None:
    events = read(log(*(line if line[:1] != "+" else f" {line}" for line in lines)), awk)
    rows = [row.split("\t") for row in events.splitlines()[1:]]
    assert all(len(row) == 10 and row[0] == "event" for row in rows)
    wanted = sum(bool(XID.match(line)) for line in lines if ": 154," not in line[:40])
    fallen = sum(
        bool(re.match(r"NVRM: GPU (?:at )?(?:PCI:)?[0-9a-fA-F:.]+ (?:GPU )?has fallen off the bus", line))
        for line in lines
    )
    assert sum(int(row[3]) for row in rows if row[4] == "xid" and row[6] != "154") >= wanted
    assert sum(int(row[3]) for row in rows if row[4] == "xid") <= sum("NVRM: Xid (" in line for line in lines) + fallen
    judged = judge(events, generation, awk=awk)
    assert all(
        row.split("\t")[6] != "xid" or "SXid" not in row.split("\t")[11][:12] for row in judged.past.splitlines()
    )
    again = judge(judged.past + events, generation, awk=awk)
    assert (sorted(again.findings), again.past) == (sorted(judged.findings), judged.past), (
        "twice the same log is one fault"
    )

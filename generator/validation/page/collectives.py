"""Sweeps of message sizes: bandwidth of each collective against its floor and the published curve."""

from __future__ import annotations

from ...pages.charts import Axis, Curve, Level, chart
from ...pages.shell import Drawing, Drawings, Part
from ..assess import Assessment
from ..figures import Measured
from ..record import Run, Series
from ..shown import figure, message_size, moment, with_unit

PREFIX, IN_PLACE, PUBLISHED, FLOOR = "busbw ", "in place ", "published ", "floor "
"""Series of a collective. `expected` of a check is what a published figure calls healthy; its floor is the last one."""
_EARLIER = 3
"""Earlier runs of the same job that are drawn faintly."""


def part(assessment: Assessment) -> Part | None:
    """One chart for each collective of the newest run of each job."""
    charts = [
        drawing
        for run, checks in assessment.current
        for curve in run.series
        if curve.name.startswith(PREFIX) and len(curve.xs) > 1
        for drawing in _charts(assessment, run, checks, curve)
    ]
    intro = "Bus bandwidth over the message size, as nccl-tests defines it: independent of the number of ranks."
    return Part("collectives", "Collectives", (Drawings(tuple(charts)),), intro) if charts else None


def _charts(assessment: Assessment, run: Run, checks: list[Measured], curve: Series) -> list[Drawing]:
    collective = curve.name.removeprefix(PREFIX)
    curves: list[Curve] = []
    legend = [(f"run {run.run}", "s0")]
    earlier = [other for other in assessment.runs if other.place == run.place and other is not run][-_EARLIER:]
    for other in earlier:
        curves += [Curve("", "s0 faint", _points(each)) for each in other.series if each.name == curve.name and each.xs]
    if curves:
        words = "the run before" if len(curves) == 1 else f"the {len(curves)} runs before"
        legend.append((words, "s0 faint"))
    for prefix, kind in ((IN_PLACE, "s5"), (PUBLISHED, "s2 dashed")):
        for each in run.series:
            if each.name == prefix + collective and each.xs:
                curves.append(Curve(prefix.strip(), kind, _points(each), has_marks=prefix == PUBLISHED))
                legend.append((prefix.strip(), kind))
    curves.append(Curve(f"run {run.run}", "s0", _points(curve), has_marks=True))
    levels, source = _levels(collective, run, checks, curve.unit)
    legend += [(level.label.rsplit(" ", 2)[0], level.kind) for level in levels]
    svg = chart(
        f"{collective}, bus bandwidth over message size",
        Axis("message size", message_size if curve.x_unit in ("bytes", "B") else figure, is_log=True),
        Axis(curve.unit, figure, from_zero=True),
        curves,
        levels=levels,
    )
    if not svg:
        return []
    where = f"{len(run.nodes)} nodes" if len(run.nodes) != 1 else "1 node"
    caption = f"{run.label}, {where}, {moment(run.started)} UTC" + (f". Judged by: {source}" if source else "")
    return [Drawing(collective, svg, tuple(legend), caption)]


def _points(each: Series) -> list[tuple[float, float]]:
    return sorted(zip(each.xs, each.ys, strict=True))


def _levels(collective: str, run: Run, checks: list[Measured], unit: str) -> tuple[list[Level], str]:
    """What the judged size of a collective should reach, and where that is from."""
    judged = next((each for each in checks if each.subject == collective and each.unit == unit), None)
    if judged is None:
        return [], ""
    found = [each.ys[-1] for each in run.series if (each.name, each.unit) == (FLOOR + collective, unit) and each.ys][:1]
    levels = [Level(f"floor {with_unit(value, unit)}", "s1 dashed", value) for value in found]
    expected = [value for value in judged.floors[-1:] if value not in found]
    levels += [Level(f"expected {with_unit(value, unit)}", "s3 dashed", value) for value in expected]
    return levels, "; ".join(judged.sources)

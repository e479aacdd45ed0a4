"""Plans as tables and pictures. All of it is public: nothing here has seen data."""

from __future__ import annotations

import decimal
import html
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastgame._arguments import path_of
from fastgame._core import ApproxDp, Budget, ContinualVector, FrequencyProfile, JoinProfile, Plan, PureDp, Structure
from fastgame._results import Comparison, MechanismPlan, WhatIf

Profile = FrequencyProfile | JoinProfile

CONFIDENCE = 0.95
DELTA = 1e-6
#: Floats do not give delta = 0, which is what a pure budget states.
SAMPLER = "up to the sampler's error"
#: Where that is bounded.
BOUND = "docs/guarantees.md, section 12"
LAST_HORIZON = 2**62
MOST_CONTRIBUTIONS = 2**32 - 1


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 999.5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def upward(value: float, digits: int = 4) -> str:
    """So many digits, rounded up: for what is promised to be no more. Read as a float it is never less than the value.

    What is rounded is the shortest decimal that reads as the value, so that 0.1 stays 0.1.
    """
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(value)))):.{digits}g}"


def as_given(value: float) -> str:
    """The shortest decimal that reads as the value: a number that was given comes out as it was."""
    return repr(float(value)).removesuffix(".0")


def size(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    scaled, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    while scaled >= 999.5 and len(units) > 1:
        scaled, units = scaled / 1000, units[1:]
    return f"{scaled:.3g} {units[0]}"


def guarantee(budget: Budget) -> str:
    """What a budget promises: as it was given, or rounded up. What floats add is said where it is all of delta."""
    if isinstance(budget, PureDp):
        return f"{as_given(budget.target_epsilon)}-DP {SAMPLER}"
    if isinstance(budget, ApproxDp):
        return f"({as_given(budget.target_epsilon)}, {as_given(budget.target_delta)})-DP"
    return f"({upward(budget.epsilon(DELTA))}, {DELTA:g})-DP"


def unit_of(structure: Structure) -> str:
    """What a structure protects, in words."""
    rows, its = (
        ("a row", "its deletion")
        if structure.contributions == 1
        else (f"{structure.contributions} rows", "their deletions")
    )
    return f"{rows}, {its} included" if structure.protect == "lifetime" else rows


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def checked(plan: Plan, profile: Profile | None) -> float:
    """The error at the end; refuses what is no profile, and a profile where there are no collisions."""
    return plan.error(CONFIDENCE, profile=profile)


def grid_of(given: Mapping[str, Any]) -> Iterable[int]:
    """The sizes of a range counter's grid."""
    return [axis.extent for axis in given["axes"]] if "axes" in given else given["shape"]


def summary(plan: Plan, profile: Profile | None = None) -> list[tuple[str, str]]:
    """The plan as rows of a name and a text."""
    return [*promises(plan), *_errors(plan, profile), *_costs(plan)]


def promises(plan: Plan) -> list[tuple[str, str]]:
    """What is kept, and the guarantee."""
    given = plan.parameters
    unit = "one update" if given["protect"] == "update" else "one insertion with its later deletion"
    if given["contributions"] > 1:
        unit = f"{given['contributions']:,} contributions of a person, each {unit}"
    return [
        ("structure", f"{plan.structure} ({', '.join(_shape(plan))})"),
        ("budget", _budget(plan.privacy)),
        ("protects", f"{unit}, in all answers together"),
        ("time", f"{counted(given['horizon'], 'step')}, mechanism {mechanism(plan)}"),
    ]


def mechanism(plan: Plan) -> str:
    """The mechanism of a plan, with what is not plain from its name."""
    return mechanism_in_words(str(plan.parameters["mechanism"]), plan.buffers, plan.privacy)


def mechanism_in_words(name: str, buffers: int | None, budget: Budget) -> str:
    """A mechanism, with what is not plain from its name."""
    if buffers is not None:
        return f"{name} with {counted(buffers, 'buffer')}"
    return f"{name} of Laplace noise" if isinstance(budget, PureDp) else name


def _budget(budget: Budget) -> str:
    if isinstance(budget, PureDp):
        return f"{budget!r}: Laplace noise, delta 0 {SAMPLER} ({BOUND})"
    return f"{budget!r}: epsilon {upward(budget.epsilon(DELTA))} at delta {DELTA:g}"


def _shape(plan: Plan) -> list[str]:
    """The parameters of the kind."""
    given = plan.parameters
    own = [name for name in ("size", "width", "depth", "max_weight", "max_norm") if name in given]
    parts = [f"{name} {given[name]:,}" for name in own]
    if "max_norm" in given:
        parts[-1] += f" ({'L1' if isinstance(plan.privacy, PureDp) else 'L2'})"
    if plan.structure == "RangeCounter":
        parts.insert(0, "grid " + " x ".join(f"{extent:,}" for extent in grid_of(given)))
        parts.append(f"levels {given['levels']}, {given['estimator']}")
    return parts


def _errors(plan: Plan, profile: Profile | None) -> list[tuple[str, str]]:
    """How far off answers will be."""
    at_end = checked(plan, profile)
    horizon = plan.parameters["horizon"]
    sketch, boxes, join = (plan.structure == name for name in ("CountSketch", "RangeCounter", "JoinSize"))
    answers = "estimates" if sketch or join else "random boxes" if boxes else "releases"
    of_all = f"all of {counted(horizon, 'answer')} together"
    rows = []
    for name, step in [("error now", 1), ("error at the end", horizon)]:
        one = plan.error(CONFIDENCE, at=step, profile=profile)
        text = f"within {number(one)} in {CONFIDENCE:.0%} of {answers}"
        if horizon > 1 and step == horizon:
            text += f"; {of_all}, within {number(plan.error(CONFIDENCE, horizon, profile=profile))}"
        rows.append((name, text))
    if boxes:
        small = plan.box(sides=[max(1, extent // 16) for extent in grid_of(plan.parameters)], confidence=CONFIDENCE)
        rows.append(("small boxes", f"within {number(small.error)} where each side is a sixteenth of its axis"))
    left_out = _left_out(plan, profile)
    if left_out:
        rows.append(("", left_out))
    # That of a tree is the same at each step.
    at_the_end = ", at the end" if plan.buffers else ""
    rows.append(("noise of a cell", f"standard deviation {number(plan.noise_std)}{at_the_end}"))
    if sketch:
        rows.append(("sd of an estimate", number(plan.std(profile=profile)) + at_the_end))
    if isinstance(profile, JoinProfile):
        rows += _join_terms(plan, profile)
    elif profile is not None:
        noise = plan.error(CONFIDENCE) / at_end
        expected = f"{counted(profile.keys, 'key')}, total {number(profile.total)}"
        rows.append(("expected stream", f"{expected}, second moment {profile.second_moment:.3g}"))
        rows.append(("share of the error", f"noise {noise:.0%}, collisions {1 - noise:.0%}"))
    if plan.structure == "ContinualVector":
        unit = 2.0 ** (math.floor(math.log2(plan.parameters["max_norm"])) - 20)
        rows.append(("values", f"are cut to multiples of {unit:.3g}, toward zero; whole multiples stay as they are"))
    rows.append(("lattice", f"releases are multiples of {plan.lattice_step:g}"))
    return rows


def _left_out(plan: Plan, profile: Profile | None) -> str:
    """What the errors do not contain: nothing, or what collides."""
    if plan.structure == "JoinSize" and profile is None:
        return "by noise alone, of two empty relations: give a JoinProfile of what is expected"
    if plan.structure == "CountSketch" and profile is None:
        return "by noise alone: what collisions add depends on the data (give a profile)"
    if plan.structure == "RangeCounter" and plan.components[1] < plan.components[0]:
        return "by noise alone: what collisions add depends on the data (Plan.box takes a second moment)"
    return ""


def _join_terms(plan: Plan, profile: JoinProfile) -> list[tuple[str, str]]:
    """What the error of a join is made of."""
    terms = plan.join_terms(profile)
    moments = f"second moments {profile.left_moment:.3g} and {profile.right_moment:.3g}"
    parts = f"colliding keys {number(terms.sketch)}, keys and noise {number(terms.cross)}, noise {number(terms.noise)}"
    sd = number(plan.std(profile=profile)) + (", at the end" if plan.buffers else "")
    rows = [
        ("expected relations", f"a join of {number(profile.join_size)}, {moments}"),
        ("sd of an estimate", f"{sd}, {terms.relative_std:.3g} of the join: {parts}"),
        ("balanced width", f"{number(terms.balanced_width)}: narrower, keys collide more; wider, noise meets noise"),
    ]
    if terms.relative_std > 0.5:
        rows.append(("", "TOO SMALL A BUDGET: an estimate would not tell this join from an empty one"))
    return rows


def _costs(plan: Plan) -> list[tuple[str, str]]:
    """Memory and work."""
    # Boxes read their cells one by one, all of them too.
    how = "whatever is read" if plan.structure == "RangeCounter" else "if it is read whole"
    memory = f"{size(plan.memory_at_start)} at first, at most {size(plan.memory)} {how}"
    if plan.cells > 1 and plan.structure not in ("JoinSize", "RangeCounter"):
        memory += f", {size(plan.memory_one_by_one)} if cell by cell"
    rows = [("memory", memory), ("cells", f"{plan.cells:,}")]
    law = "gamma" if isinstance(plan.privacy, PureDp) else "normal"
    most = f"at most {counted(plan.variables, f'{law} variable')}"
    if plan.structure == "RangeCounter":
        rows.append(("components", "{:,}, of which {:,} are dense".format(*plan.components)))
        rows.append(("cells read", f"{plan.cells_read():,} for a random box; {most} each"))
    elif plan.structure == "JoinSize":
        rows.append(("cells read", f"all, for each estimate; {most} each"))
    elif plan.cells > 1:
        what = "key" if plan.structure == "CountSketch" else "cell"
        each = f"{plan.cells_read(1):,} for one {what}, {plan.cells_read():,} for all"
        rows.append(("cells read", f"{each}; {most} each"))
    else:
        rows.append(("cells read", f"1; {most}"))
    return rows


def what_if(plan: Plan, profile: Profile | None = None) -> list[WhatIf]:
    """What other parameters would cost."""
    present = checked(plan, profile)
    given = plan.parameters
    changes: list[tuple[str, dict[str, Any]]] = []
    for factor in (2, 10, 1000):
        if given["horizon"] * factor <= LAST_HORIZON:
            changes.append((f"{factor:,} times the horizon", {"horizon": given["horizon"] * factor}))
    other = "lifetime" if given["protect"] == "update" else "update"
    changes.append((f"protect={other!r}", {"protect": other}))
    for factor in (2, 5):
        if given["contributions"] * factor <= MOST_CONTRIBUTIONS:
            contributions = given["contributions"] * factor
            changes.append((f"contributions={contributions}", {"contributions": contributions}))
    measure = "epsilon" if isinstance(plan.privacy, PureDp) else "rho"
    changes.append((f"half the budget ({measure})", {"privacy": plan.privacy.split(0.5)[0]}))
    rows = []
    for change, parameters in changes:
        changed = plan.replace(**parameters)
        error = changed.error(CONFIDENCE, profile=profile)
        rows.append(WhatIf(change, changed, error, error / present))
    return rows


#: Another mechanism is worth its cost from so much less error on.
_WORTH = 0.95
#: How often the time is measured.
_REPEATS = 3


def compare(
    plan: Plan, reads: int | None = None, keys: int | None = None, profile: Profile | None = None
) -> Comparison:
    """All mechanisms that the budget allows, beside each other."""
    checked(plan, profile)
    horizon = plan.parameters["horizon"]
    if reads is None:
        reads = min(horizon, 1000)
    words = ["tree"]
    if not isinstance(plan.privacy, PureDp):
        # The paper's formula is made for two steps and more.
        words += ["blt"] + (["tree-paper"] if horizon > 1 else [])
    rows = []
    for word in words:
        own = plan.buffers is not None and word == "blt"
        changed = plan.replace(mechanism=word, buffers=plan.parameters["buffers"] if own else None)
        # The shortest of a few: what else the machine does, and a first call, only add to it.
        time, memory = min(changed._measure(reads, keys) for _ in range(_REPEATS))
        now, end = (changed.error(CONFIDENCE, at=step, profile=profile) for step in (1, horizon))
        rows.append(MechanismPlan(word, changed.buffers, changed, now, end, memory, time, changed.variables))
    return Comparison(tuple(rows), *_choice(rows), noise_alone=bool(_left_out(plan, profile)))


def _choice(rows: list[MechanismPlan]) -> tuple[str, str]:
    tree, *others = rows
    blt = next((row for row in others if row.mechanism == "blt"), None)
    if blt is None:
        return "tree", "pure differential privacy has no other mechanism here"
    ratio = blt.error_at_end / tree.error_at_end
    cost = f"{blt.time / tree.time:.1f} times the time of the tree and {blt.memory / tree.memory:.2f} of its memory"
    if ratio > _WORTH:
        return "tree", f"blt would have {ratio:.2f} of its error at the end, for {cost}"
    now = blt.error_now / tree.error_now
    return "blt", f"{ratio:.2f} of the tree's error at the end, {now:.2f} at first, for {cost}"


def comparison_as_text(comparison: Comparison) -> str:
    """A line a mechanism, and the choice."""
    heads = ("mechanism", "error now", "at the end", "memory", "time a cell", "variables")
    lines = [heads]
    for row in comparison.mechanisms:
        name = row.mechanism if row.buffers is None else f"{row.mechanism}, {counted(row.buffers, 'buffer')}"
        errors = (number(row.error_now), number(row.error_at_end))
        lines.append((name, *errors, size(row.memory), f"{row.time:.0f} ns", f"{row.variables}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def aligned(line: tuple[str, ...]) -> str:
        padded = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        return "  ".join([f"{line[0]:<{widths[0]}}", *padded])

    table = "\n".join(map(aligned, lines))
    plan = comparison.mechanisms[0].plan
    left_out = f"Errors are {_left_out(plan, None)}.\n" if comparison.noise_alone else ""
    return (
        f"Mechanisms for a {plan.structure} ({', '.join(_shape(plan))}), {plan.privacy!r}, "
        f"{counted(plan.parameters['horizon'], 'step')}\n{table}\n"
        f"(errors: what {CONFIDENCE:.0%} of answers stay within; memory: the most after any of these reads;\n"
        f"time: measured here, on a small structure; the choice goes by the error at the end, not by time)\n{left_out}"
        f"Choose {comparison.choice!r}: {comparison.why}."
    )


def fits_in_vector(plan: Plan, keys: int) -> Plan | None:
    """The plan of a vector with a cell a key, where it does better than a sketch: no more cells, no collisions."""
    given = dict(plan.parameters)
    if plan.structure != "CountSketch" or not 1 <= keys <= plan.cells:
        if keys < 1:
            raise ValueError(f"keys must be an integer from 1 to 2^64 - 1; {keys} was given")
        return None
    bound = float(given.pop("max_weight"))
    for name in ("width", "depth", "hash_seed"):
        del given[name]
    return ContinualVector.plan(keys, max_norm=bound, **given)


def what_if_rows(plan: Plan, profile: Profile | None = None) -> list[tuple[str, str]]:
    """As text: the change, and its error."""
    return [(row.change, f"within {number(row.error)} ({row.ratio:.3g} times)") for row in what_if(plan, profile)]


def as_text(plan: Plan, profile: Profile | None = None, vector: Plan | None = None) -> str:
    """Two tables of two columns; with a vector that would do better than this sketch, a line on it."""
    changes = f"\nError in {CONFIDENCE:.0%} of cases with"
    parts = [("", summary(plan, profile)), (changes, what_if_rows(plan, profile))]
    width = max(len(name) for _, rows in parts for name, _ in rows)
    lines = [f"Plan of a {plan.structure}"]
    for title, rows in parts:
        lines += [title] if title else []
        lines += [f"  {name:<{width}}  {text}" for name, text in rows]
    if vector is not None:
        better = f"{number(vector.error(CONFIDENCE))} instead of {number(checked(plan, profile))}"
        keys = vector.parameters["size"]
        lines.append(
            f"\nYour domain fits in a plain vector: {counted(keys, 'key')}, a cell each, would be within {better} "
            f"in {CONFIDENCE:.0%} of cases, without collisions."
        )
    return "\n".join(lines)


def as_json(plan: Plan, profile: Profile | None = None, vector: Plan | None = None) -> str:
    """The numbers, for programs."""

    def errors(plan: Plan, profile: Profile | None) -> dict[str, Any]:
        return {
            "structure": plan.structure,
            "parameters": {**plan.parameters, "privacy": repr(plan.privacy)},
            "buffers": plan.buffers,
            "confidence": CONFIDENCE,
            "error_now": plan.error(CONFIDENCE, at=1, profile=profile),
            "error_at_end": plan.error(CONFIDENCE, profile=profile),
            "noise_std": plan.noise_std,
            "std": plan.std(profile=profile),
            "lattice_step": plan.lattice_step,
            "cells": plan.cells,
            "cells_read": plan.cells_read(),
            "memory_at_start": plan.memory_at_start,
            "memory": plan.memory,
            "memory_one_by_one": plan.memory_one_by_one,
        }

    rows = [{"change": row.change, "error": row.error, "ratio": row.ratio} for row in what_if(plan, profile)]
    fits = None if vector is None else errors(vector, None)
    return json.dumps({**errors(plan, profile), "what_if": rows, "fits_in_vector": fits}, indent=2, default=repr)


def comparison_as_json(comparison: Comparison) -> str:
    """The numbers, for programs."""
    names = [name for name in MechanismPlan._fields if name != "plan"]
    rows = [{name: getattr(row, name) for name in names} for row in comparison.mechanisms]
    plan = comparison.mechanisms[0].plan
    given = {name: value for name, value in plan.parameters.items() if name not in ("mechanism", "buffers")}
    shown = {
        "structure": plan.structure,
        "parameters": {**given, "privacy": repr(plan.privacy)},
        "noise_alone": comparison.noise_alone,
        "mechanisms": rows,
        "choice": comparison.choice,
        "why": comparison.why,
    }
    return json.dumps(shown, indent=2, default=repr)


def as_html(plan: Plan) -> str:
    """The same tables for notebooks; nothing is loaded from elsewhere."""

    def table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
        left = 'style="text-align: left"'
        cells = "".join(
            f"<tr><th scope='row' {left}>{html.escape(name)}</th><td {left}>{html.escape(text)}</td></tr>"
            for name, text in rows
        )
        return f"<table><caption {left}>{html.escape(caption)}</caption><tbody>{cells}</tbody></table>"

    return table(f"Plan of a {plan.structure}", summary(plan)) + table(
        f"Error in {CONFIDENCE:.0%} of cases with", what_if_rows(plan)
    )


# Dark to light, and each with a dash of its own: apart in grey too.
STYLES = [("#08306b", "-"), ("#d94801", "--"), ("#238b45", "-."), ("#9e9ac8", ":"), ("#777777", (0, (1, 3)))]


def steps_between(first: int, last: int, most: int = 64) -> list[int]:
    """Steps from the first to the last, evenly on a logarithmic axis."""
    ratio = math.log2(last / first)
    return sorted({min(last, round(first * 2 ** (ratio * i / most))) for i in range(most + 1)} | {first, last})


def draw_plan(plan: Plan, path: str | os.PathLike[str], profile: Profile | None = None) -> None:
    """Error over time, over horizons for both units, and (a sketch with a profile) over widths, into a file."""
    file = path_of(path)
    error = checked(plan, profile)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional)
    except ImportError:
        message = 'to draw a plan, matplotlib must be installed: pip install "fastgame-dp[plot]"'
        raise ImportError(message) from None
    panels: list[Callable[..., None]] = [draw_time, draw_horizons]
    if profile is not None:
        panels.append(draw_widths)
    # A figure of its own, without pyplot: no global state, no display.
    figure = Figure(figsize=(4.6 * len(panels), 4.2), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for draw, axis in zip(panels, axes, strict=True):
        draw(axis, plan, profile, error)
        axis.grid(True, color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
    figure.suptitle(plan_title(plan), fontsize=11)
    figure.savefig(file, dpi=150)


def plan_title(plan: Plan) -> str:
    """What is drawn, in two lines: structure and shape; budget, time and mechanism."""
    steps = counted(plan.parameters["horizon"], "step")
    return (
        f"{plan.structure} ({', '.join(_shape(plan))}): the error that {CONFIDENCE:.0%} of answers stay within\n"
        f"{plan.privacy!r}, {steps}, mechanism {mechanism(plan)}"
    )


def error_label(plan: Plan) -> str:
    """What an error is measured in."""
    return f"error (in {'pairs of the join' if plan.structure == 'JoinSize' else 'units of the counts'})"


def mark(axis: Any, x: float, error: float) -> None:
    """Where this plan is."""
    axis.plot([x], [error], "o", color="black", markersize=7, label=f"this plan: {number(error)}", zorder=5)


def draw_time(axis: Any, plan: Plan, profile: Profile | None, error: float) -> None:
    """Left: from now to the end."""
    horizon = plan.parameters["horizon"]
    steps = steps_between(1, horizon, 16)
    lines: list[tuple[str, dict[str, Any]]] = [("one answer", {"profile": profile})]
    if profile is not None:
        lines.append(("one answer, noise alone", {}))
    if horizon > 1:
        lines.append((f"all of {horizon:,} answers", {"releases": horizon, "profile": profile}))
    for (name, how), (color, dash) in zip(lines, STYLES, strict=False):
        errors = [plan.error(CONFIDENCE, at=step, **how) for step in steps]
        axis.plot(steps, errors, color=color, linestyle=dash, label=name)
    mark(axis, horizon, error)
    axis.set_xscale("log", base=10)
    axis.set_ylim(bottom=0)
    axis.margins(y=0.15)
    axis.set(title="Over time", xlabel="time step, from now to the end", ylabel=error_label(plan))


def draw_horizons(axis: Any, plan: Plan, profile: Profile | None, error: float) -> None:
    """Middle: other horizons and the other unit."""
    horizons = [2**levels for levels in range(_first_level(plan), 41)]
    for protect, (color, dash) in zip(["update", "lifetime"], STYLES, strict=False):
        plans = [plan.replace(horizon=horizon, protect=protect) for horizon in horizons]
        errors = [changed.error(CONFIDENCE, profile=profile) for changed in plans]
        # All horizons of as many levels have the same noise of a tree.
        style = "default" if plan.parameters["mechanism"] == "blt" else "steps-pre"
        axis.plot(horizons, errors, color=color, linestyle=dash, drawstyle=style, label=f"protect={protect!r}")
    mark(axis, plan.parameters["horizon"], error)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set(title="Other horizons and the other unit", xlabel="horizon (time steps)", ylabel=error_label(plan))


def _first_level(plan: Plan) -> int:
    """Of the least horizon that the mechanism allows: the paper's formula needs two steps, buffers need more."""
    for level in range(LAST_HORIZON.bit_length()):
        try:
            plan.replace(horizon=2**level)
        except ValueError:
            continue
        return level
    return 0


def draw_widths(axis: Any, plan: Plan, profile: Profile | None, error: float) -> None:
    """Right: other shapes of a sketch."""
    width, own = plan.parameters["width"], plan.parameters["depth"]
    bits = width.bit_length() - 1
    # A join has 32 buckets at least.
    least = 5 if plan.structure == "JoinSize" else 0
    widths = [2**level for level in range(max(least, bits - 6), min(30, bits + 6) + 1)]
    depths = sorted({1, 3, 5, 9, own})
    for depth, (color, dash) in zip(depths, STYLES, strict=False):
        errors = [plan.replace(width=w, depth=depth).error(CONFIDENCE, profile=profile) for w in widths]
        axis.plot(widths, errors, color=color, linestyle=dash, label=f"depth {depth}")
    mark(axis, width, error)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set(title="Other shapes", xlabel="width (buckets a row)", ylabel=error_label(plan))

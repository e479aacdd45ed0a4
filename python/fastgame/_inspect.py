"""What may be shown of a store, as a table and for programs: no counter, no noise."""

from __future__ import annotations

import json
from typing import Any

import fastgame as fg
from fastgame._plan import DELTA, guarantee, promises, size
from fastgame._store import Job, StoreInfo, words_of


def _plan_of(info: StoreInfo) -> fg.Plan | None:
    """The plan of the structure; None for one that was made in another language."""
    if "privacy" not in info.parameters or isinstance(info.parameters["privacy"], str):
        return None
    plan: fg.Plan = getattr(fg, info.structure).plan(**info.parameters)
    return plan


def as_text(path: str, info: StoreInfo, job: Job | None) -> str:
    """A table of two columns."""
    plan = _plan_of(info)
    rows = [("file", f"{path} (SECRET: it holds exact counts)")]
    if plan is None:
        rows += [("structure", info.structure), *((name, str(value)) for name, value in info.parameters.items())]
    else:
        rows += [*promises(plan), ("parameters", _parameters(info))]
    if job is not None:
        clock = job.clock
        zone = f", in {clock['tz']}" if clock["tz"] else ""
        rows.append(("clock", f"{clock['start']} to {clock['end']}, every {clock['every']}{zone}"))
    state = "released; takes no more updates" if info.sealed else "not released"
    horizon = "" if plan is None else f" of {plan.parameters['horizon']:,}"
    ends = "" if job is None else f", which ends at {job.ticks.time(info.now).isoformat(sep=' ')}"
    rows += [
        ("step", f"{info.now:,}{horizon}{ends}: {state}"),
        ("format", f"version {info.version}"),
        ("not private", f"generation {info.generation:,} (calls so far: an older copy of the file has a lower one)"),
        ("not private", f"{size(info.bytes[0])} of state, {size(info.bytes[1])} of journal"),
    ]
    if info.lost:
        rows.append(
            ("not private", f"{size(info.lost)} of a call that is under way, or was cut short and is forgotten")
        )
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}  {text}".rstrip() for name, text in rows)


def _parameters(info: StoreInfo) -> str:
    """Those that the rows before do not say."""
    said = {"privacy", "horizon", "protect", "contributions", "mechanism", "buffers", "size", "shape", "axes", "width"}
    said |= {"depth", "levels", "estimator", "max_weight", "max_norm", "insecure_seed"}
    parts = [f"{name} {value}" for name, value in info.parameters.items() if name not in said]
    parts += [repr(axis) for axis in info.parameters.get("axes") or ()]
    if info.parameters.get("insecure_seed") is not None:
        parts.append(f"INSECURE seed {info.parameters['insecure_seed']}")
    return ", ".join(parts)


def as_json(path: str, info: StoreInfo, job: Job | None) -> str:
    """The same for programs."""
    plan = _plan_of(info)
    promise: dict[str, Any] | None = None
    if plan is not None:
        budget = plan.privacy
        pure = isinstance(budget, fg.PureDp)
        promise = {
            "text": guarantee(budget),
            "epsilon": budget.target_epsilon if isinstance(budget, fg.PureDp) else budget.epsilon(DELTA),
            "delta": 0.0 if pure else DELTA,
        }
    found = {
        "file": path,
        "structure": info.structure,
        "parameters": dict(info.parameters) if plan is None else words_of(info.parameters),
        "guarantee": promise,
        "clock": None if job is None else dict(job.clock),
        "now": info.now,
        "sealed": info.sealed,
        "version": info.version,
        "not_private": {
            "generation": info.generation,
            "state_bytes": info.bytes[0],
            "journal_bytes": info.bytes[1],
            "unfinished_bytes": info.lost,
        },
    }
    return json.dumps(found, indent=2, ensure_ascii=False)

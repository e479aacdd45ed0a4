#!/usr/bin/env python3
"""An audit by tools that are not this project's: attacks of scikit-learn, bounds of privacy-estimates.

Neither knows anything of the mechanisms. A classifier learns which answers come from runs with a unit and which from
runs without it; privacy-estimates (Microsoft; "Bayesian Estimation of Differential Privacy", Zanella-Beguelin et al.,
2022) turns its errors on fresh runs into a lower bound on epsilon, by Clopper-Pearson limits. Only the worst unit is
found here.

In a virtual environment of its own (neither is a dependency of the package, of its tests or of its CI):

    python3 -m venv /tmp/audit
    /tmp/audit/bin/pip install build/wheels/*.whl privacy-estimates==0.1.0.post1 scikit-learn
    /tmp/audit/bin/python scripts/audit_independent.py               print the table; a few minutes
    /tmp/audit/bin/python scripts/audit_independent.py --write       put it into docs/audit.md
    /tmp/audit/bin/python scripts/audit_independent.py --runs N      runs a side, 60000 by default

Fails if a bound exceeds the claim, or if smaller noise is not caught. The noise has fixed seeds.
"""

import argparse
import math
import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from privacy_estimates import compute_eps_lo
from privacy_estimates.utils import AttackResults
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastgame as fg

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- begin: scripts/audit_independent.py -->", "<!-- end -->"

#: The probability that any bound of the table is wrong by chance.
ALPHA = 1e-6


@dataclass(frozen=True)
class Case:
    """A counter, its claim, and by how much noise must be too small to be caught."""

    mechanism: str
    protect: str
    horizon: int
    #: mu, or epsilon of a pure budget.
    claim: float
    factor: float
    delta: float

    @property
    def pure(self):
        return self.delta == 0.0

    def budget(self, factor=1.0):
        return fg.PureDp(epsilon=self.claim * factor) if self.pure else fg.Gdp(mu=self.claim * factor)

    @property
    def epsilon(self):
        return self.claim if self.pure else self.budget().epsilon(delta=self.delta)

    def run(self, factor, unit, runs, seed):
        """The answers at every step, a row a run; `unit` is a pair of steps, or None."""
        answers = np.empty((runs, self.horizon))
        parameters = {"horizon": self.horizon, "privacy": self.budget(factor), "protect": self.protect}
        parameters["mechanism"] = "tree" if self.pure else self.mechanism
        for i in range(runs):
            counter = fg.ContinualCounter(insecure_seed=seed + i, **parameters)
            for t in range(self.horizon):
                counter.advance(to=t + 1)
                if unit is not None and t in unit:
                    counter.update(1 if t == unit[0] else -1)
                answers[i, t] = counter.release()
        return answers

    def worst_unit(self, noise):
        """The unit that the measured covariance says is easiest to see."""
        inverse = np.linalg.inv(np.atleast_2d(np.cov(noise.T)))
        steps = np.arange(self.horizon)
        ends = range(1, self.horizon + 1) if self.protect == "lifetime" else [self.horizon]
        units = [(start, end) for start in range(self.horizon) for end in ends if start < end]
        shifts = [((steps >= start) & (steps < end)).astype(float) for start, end in units]
        return units[int(np.argmax([shift @ inverse @ shift for shift in shifts]))]


def attacks(pure, seed):
    """Classifiers that learn to tell answers with the unit from those without."""
    yield LogisticRegression()
    if pure:
        network = MLPClassifier((32, 32), early_stopping=True, max_iter=60, random_state=seed)
        yield make_pipeline(StandardScaler(), network)


def counts(scores, threshold):
    without, with_ = scores
    return AttackResults(
        FP=int((without > threshold).sum()),
        TN=int((without <= threshold).sum()),
        TP=int((with_ > threshold).sum()),
        FN=int((with_ <= threshold).sum()),
    )


def bound(case, factor, runs, alpha, seed):
    """A lower bound on epsilon at the case's delta: a third of the runs each to learn from, to choose by, to judge."""
    unit = case.worst_unit(case.run(factor, None, min(runs, 5000), seed))
    sides = [case.run(factor, unit_or_none, runs, seed + side * 10**7) for side, unit_or_none in ((1, None), (2, unit))]
    learn, choose, judge = zip(*(np.array_split(side, 3) for side in sides), strict=True)
    best = (-math.inf, None, None)
    for attack in attacks(case.pure, seed % 2**31):
        attack.fit(np.vstack(learn), np.repeat([0, 1], [len(side) for side in learn]))
        scores = [attack.predict_proba(side)[:, 1] for side in choose]
        for threshold in np.quantile(scores[0], np.r_[0.02:0.98:49j, 0.985, 0.99, 0.994, 0.997, 0.9985]):
            found = compute_eps_lo(counts(scores, threshold), delta=case.delta, alpha=alpha, method="beta")
            best = max(best, (found, threshold, attack), key=lambda entry: entry[0])
    _, threshold, attack = best
    scores = [attack.predict_proba(side)[:, 1] for side in judge]
    return compute_eps_lo(counts(scores, threshold), delta=case.delta, alpha=alpha, method="beta")


def cases():
    root = math.sqrt(2.0)
    for protect in ("update", "lifetime"):
        for mechanism, horizon in [("tree", 4), ("tree", 16), ("blt", 4), ("blt", 16)]:
            yield Case(mechanism, protect, horizon, 1.0, root, 0.1)
        yield Case("tree-paper", protect, 16, 1.0, 2.0, 0.1)
        for horizon, factor in [(1, root), (2, root), (4, 2.0)]:
            yield Case("laplace", protect, horizon, 3.0, factor, 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/audit.md")
    parser.add_argument("--runs", type=int, default=60_000, help="runs a side")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")

    table = list(cases())
    alpha = ALPHA / (2 * len(table))
    versions = ", ".join(f"{package} {version(package)}" for package in ("privacy-estimates", "scikit-learn"))
    lines = [
        f"{versions}; {arguments.runs:,} runs a side, a third of them judged; all bounds together hold with "
        f"probability 1 - {ALPHA:g}.",
        "",
        "| mechanism | unit | horizon | delta | claimed epsilon | lower bound | noise too small by | lower bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    failures = []
    for i, case in enumerate(table):
        seed = (2 * i + 1) * 10**8
        sound = bound(case, 1.0, arguments.runs, alpha, seed)
        broken = bound(case, case.factor, arguments.runs, alpha, seed + 10**8)
        name = f"{case.mechanism} | {case.protect} | {case.horizon} | {case.delta:g} | {case.epsilon:.3f}"
        lines.append(f"| {name} | {sound:.3f} | {case.factor:.2f} | {broken:.3f} |")
        print(lines[-1], file=sys.stderr, flush=True)
        if sound > case.epsilon:
            failures.append(f"the claim is broken: {lines[-1]}")
        if broken <= case.epsilon:
            failures.append(f"not caught: {lines[-1]}")
    text = "\n".join(lines)
    print(text)
    if arguments.write:
        page = DOCS / "audit.md"
        before, _, rest = page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()

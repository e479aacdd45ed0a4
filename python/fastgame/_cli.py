"""The command ``fastgame``: private releases from files with a time column.

What it writes to the standard output or to --out is private in the sense of the stated guarantee and may be published.
What it writes to the standard error is for the operator alone; but for errors and --not-private-counts nothing there
depends on the data.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import fastgame as fg
from fastgame._arguments import nearest
from fastgame._axis_text import axis_of, box_of
from fastgame._inspect import as_json as state_as_json
from fastgame._inspect import as_text as state_as_text
from fastgame._plan import BOUND, as_given, as_json, as_text, comparison_as_json, guarantee, unit_of, upward
from fastgame._rows import AFTER_RUN, BEFORE_RUN
from fastgame._signals import waiting_signals
from fastgame._store import Job, Unit, digest, open_job, overview
from fastgame._writing import Staged, write_text
from fastgame.axis import Datetime, StrCategory

if TYPE_CHECKING:
    import pyarrow as pa

    from fastgame._files import Files

_EXIT_REFUSED = 2

_DATA = r"""
  printf 'time,page\n2026-01-01 09:30,/home\n2026-01-02 10:00,/about\n' > visits.csv
"""
_EXAMPLES = {
    "count": _DATA
    + r"""
  fastgame count visits.csv --time time --start 2026-01-01 --end 2026-02-01 \
      --every 1w --epsilon 1 --delta 1e-6

  printf '/home\n/about\n/jobs\n' > pages.txt
  fastgame count visits.csv --time time --start 2026-01-01 --end 2026-02-01 \
      --every 1w --epsilon 1 --delta 1e-6 --key page --keys pages.txt --out pages.csv
""",
    "top": _DATA
    + r"""
  printf '/home\n/about\n/jobs\n' > pages.txt
  fastgame top visits.csv --time time --start 2026-01-01 --end 2026-02-01 \
      --every 1w --rho 0.5 --key page --keys pages.txt -k 2 --width 1024
""",
    "range": r"""
  printf 'time,age,site\n2026-01-01 09:30,34,north\n2026-01-02 10:00,71,south\n' > visits.csv
  fastgame range visits.csv --time time --start 2026-01-01 --end 2026-02-01 --every 1w --rho 0.5 \
      --axis age:0:100:20 --axis site:north,south --box age=0:50 --box age=50:,site=south
""",
    "join": r"""
  printf 'time,user\n2026-01-01 09:30,ann\n2026-01-02 10:00,bob\n' > visits.csv
  printf 'time,user\n2026-01-03 11:00,bob\n' > orders.csv
  fastgame join visits.csv orders.csv --on user --time time --start 2026-01-01 --end 2026-02-01 \
      --every 1w --rho 0.5 --width 1024
""",
    "inspect": _DATA
    + r"""
  fastgame count visits.csv --time time --start 2026-01-01 --end 2026-02-01 --every 1d \
      --rho 0.5 --state visits.fg --until 2026-01-03 --out until-01-03.csv
  fastgame inspect visits.fg
""",
    "plan": r"""
  fastgame plan counter --start 2026-01-01 --end 2027-01-01 --every 1h --epsilon 1 --delta 1e-6

  fastgame plan sketch --horizon 8760 --rho 0.5 --expected-total 1e6 --key-count 50000 --plot plan.png

  fastgame plan range --horizon 8760 --rho 0.5 --axis distance:0:5000:100 --axis delay:-60:300
""",
}


#: Behind the list of commands.
_BEGIN = """\
Each command has an example in its help: fastgame count --help. To begin, plan says the error beforehand (it needs no
data), and count is the simplest.

What goes to the standard output, --out and --plot may be published. The standard error is for you alone. The exit code
is 0 where all was done, 2 where something was refused, 130 after an interruption.
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Examples as they stand, and defaults."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        shown = action.default not in (None, False, argparse.SUPPRESS) and action.option_strings
        return f"{text} (default: %(default)s)" if shown else text


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and what may have been meant."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse; what was given is kept for `error`."""
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = ", ".join(map(repr, action.choices))
            meant = nearest(str(value), action.choices)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {allowed}){hint}")

    def _mistyped(self) -> str:
        """What may have been meant by words that look like options and are none."""
        known = {option.lstrip("-"): option for option in self._option_string_actions}
        meant = []
        for word in dict.fromkeys(word.partition("=")[0] for word in self._words if word.startswith("-")):
            is_known = any(option.startswith(word) for option in known.values())
            near = None if is_known else nearest(word.lstrip("-"), known)
            if near:
                meant.append(f"{known[near]} instead of {word}")
        return f"; did you mean {' and '.join(meant)}?" if meant else ""

    def error(self, message: str) -> NoReturn:
        if "required" in message or "unrecognized" in message:
            message += self._mistyped()
        for kind, words in (("int", "a whole number"), ("float", "a number")):
            message = re.sub(f"invalid {kind} value: (.*)", rf"must be {words}; \1 was given", message)
        _tell(f"{self.prog}: error: {' '.join(message.split())} (see {self.prog} --help)")
        sys.exit(_EXIT_REFUSED)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was given."""
    parser = _parser()
    given, more = parser.parse_known_args(arguments)
    if more:
        _commands(parser)[given.command].error(f"unrecognized arguments: {' '.join(more)}")
    return given


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    found: dict[str, argparse.ArgumentParser] = commands.choices
    return found


def _character(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in '\r\n"':
        raise argparse.ArgumentTypeError(f"the delimiter must be one ASCII character; {text!r} was given")
    return text


def _clock_options(parser: argparse.ArgumentParser, required: bool) -> None:
    text = (
        "Time is cut into steps; the end of a step is a tick, at which there is a release whether or not there were "
        "rows. Nothing of the clock may be taken from the data."
    )
    group = parser.add_argument_group("the public clock", textwrap.fill(text, 100))
    start = "when step 1 begins, as 2026-01-01 or 2026-01-01T09:30"
    group.add_argument("--start", metavar="TIME", required=required, help=start)
    group.add_argument("--end", metavar="TIME", required=required, help="when the last step ends, in the same form")
    every = "the length of a step: 15m (minutes), 1h, 1d, 1w, 1mo (a month), 1y"
    group.add_argument("--every", metavar="DURATION", required=required, help=every)
    group.add_argument("--tz", metavar="ZONE", help="time zone, as Europe/Copenhagen, if the times have one")


def _privacy_options(parser: argparse.ArgumentParser, seed: bool = True) -> None:
    text = (
        "The budget pays for all that is written, at all ticks together. Give --epsilon and --delta (usual: 1 and "
        "1e-6), or --rho, or --mu; less is more private. With --delta 0 the noise is Laplace's, and the promise pure "
        "up to the error of a float sampler."
    )
    group = parser.add_argument_group("privacy", textwrap.fill(text, 100))
    group.add_argument("--rho", type=float, metavar="R", help="budget as zero-concentrated differential privacy")
    group.add_argument("--mu", type=float, metavar="M", help="budget as Gaussian differential privacy")
    group.add_argument("--epsilon", type=float, metavar="E", help="budget as (epsilon, delta), with --delta")
    group.add_argument("--delta", type=float, metavar="D", help="see --epsilon; 0 for pure privacy")
    protect = "what is protected: that a row came (update), or that it came and went (lifetime)"
    group.add_argument("--protect", choices=["update", "lifetime"], default="update", help=protect)
    group.add_argument(
        "--contributions", type=int, default=1, metavar="M", help="rows that one person may have, at most"
    )
    mechanism = "how noise is correlated: tree (fast), blt (least error; not with --delta 0), tree-paper (to compare)"
    group.add_argument("--mechanism", choices=["tree", "blt", "tree-paper"], default="tree", help=mechanism)
    buffers = "of blt: numbers kept for each count, 1 to 10; chosen without it"
    group.add_argument("--buffers", type=int, metavar="N", help=buffers)
    if seed:
        insecure = "INSECURE: repeatable noise for tests; whoever knows the seed knows the noise"
        group.add_argument("--insecure-seed", type=int, metavar="N", help=insecure)


def _key_options(parser: argparse.ArgumentParser) -> None:
    text = "top needs both --key and --keys; count counts all rows together without them."
    group = parser.add_argument_group("the keys", text)
    group.add_argument(
        "--key", action="append", metavar="COLUMN", help="the column of keys; repeat it for keys of several parts"
    )
    keys = (
        "the PUBLIC list of keys to report: one a line (.txt), or a table with the columns named by --key; never one "
        "of the files of rows"
    )
    group.add_argument("--keys", metavar="FILE", help=keys)
    column = "the column of --keys that holds the key, if it has another name there; repeat as --key"
    group.add_argument("--keys-column", action="append", metavar="COLUMN", help=column)


def _axis_options(parser: argparse.ArgumentParser, required: bool) -> None:
    group = parser.add_argument_group("the axes", "Their edges are public. Values outside go to bins of their own.")
    axis = (
        "an axis, named as its column: name:lo:hi:bins, name:lo:hi (integers), name:start:end:every (dates) or "
        "name:A,B,C (categories); repeat it"
    )
    group.add_argument("--axis", action="append", metavar="AXIS", required=required, help=axis)
    levels = (
        "which levels of the structure are kept: every A-th, 1 to 8, or dyadic (the paper's). It changes the error and "
        "the time it takes, not the privacy"
    )
    group.add_argument("--levels", default="2", metavar="A", help=levels)
    estimator = "boxes with the least noise, or as the paper's cover"
    words = ["least_squares", "cover"]
    group.add_argument("--estimator", choices=words, default="least_squares", help=estimator)


def _input_options(parser: argparse.ArgumentParser, several: bool = True) -> None:
    if several:
        files = "CSV, Parquet or JSON lines, or a quoted pattern: 'logs/*.csv'"
        parser.add_argument("files", nargs="+", metavar="FILE", help=files)
    group = parser.add_argument_group("the rows")
    group.add_argument(
        "--time", required=True, metavar="COLUMN", help="the column of times: timestamps, dates or ISO text"
    )
    group.add_argument(
        "--delete-time",
        metavar="COLUMN",
        help="the column of times at which rows are taken out again, missing if they stay; needs --protect lifetime",
    )
    weight = "the column of what a row counts for, 1 without it; whole numbers, except for count with --key"
    group.add_argument("--weight", metavar="COLUMN", help=weight)
    group.add_argument("--max-weight", type=int, default=1, metavar="W", help="the largest absolute weight of a row")
    excess = "with a weight beyond --max-weight a row is left out as a bad one (error), or counts that much (clip)"
    group.add_argument("--on-excess", choices=["error", "clip"], default="error", help=excess)
    form = (
        "of times that are not ISO: as strptime (%%d/%%m/%%Y, %%Y-%%m), or epoch_s or epoch_ms (seconds or "
        "milliseconds since 1970 in UTC, which need --tz)"
    )
    group.add_argument("--time-format", metavar="FORMAT", help=form)
    group.add_argument(
        "--input-format", choices=["csv", "parquet", "json"], help="if the ending of the files does not say it"
    )
    group.add_argument(
        "--delimiter", type=_character, metavar="C", help="of CSV; without it a tab for .tsv, else a comma"
    )
    multiline = (
        "quoted fields of CSV may have line breaks. HAZARD: a quote that is not closed swallows the rows behind it. "
        "Without this a row is a line, and whoever writes the file must not let a text have line breaks: what follows "
        "one is a row"
    )
    group.add_argument("--multiline", action="store_true", help=multiline)
    bad = (
        "stop if a row cannot be used or is out of range; without this such rows are left out. NOT PRIVATE: whether it "
        "stops, and what it says, depends on single rows"
    )
    group.add_argument("--fail-on-bad-rows", action="store_true", help=bad)


def _output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--release-every", type=int, default=1, metavar="N", help="release at every N-th step, and the last"
    )
    group.add_argument(
        "--format", choices=["table", "csv", "parquet", "json"], help="default: by the ending of --out, else table"
    )
    group.add_argument("--out", metavar="FILE", help="where to write; the terminal without it")
    group.add_argument("--plot", metavar="FILE", help="draw the releases with their error as well (.png, .svg, .pdf)")
    check = (
        "say what would be read, from which columns and in which forms, and stop: nothing is released, and rows are "
        "read for --not-private-counts alone"
    )
    group.add_argument("--check", action="store_true", help=check)
    told = group.add_mutually_exclusive_group()
    quiet = "tell nothing but errors, that a state was made, and that an output was left as it is"
    told.add_argument("--quiet", action="store_true", help=quiet)
    counts = "tell how many rows were read, and how many were left out and why: NOT PRIVATE, for the operator alone"
    told.add_argument("--not-private-counts", action="store_true", help=counts)


def _state_options(parser: argparse.ArgumentParser) -> None:
    text = (
        "A job that runs again and again: a run goes on where the last one stopped, under the same guarantee. Where "
        "FILE is there, options of the structure and the budget may be left out. Leave the budget out from the second "
        "run on: a FILE that is missing is then an error, not a new one."
    )
    group = parser.add_argument_group("the state", textwrap.fill(text, 100))
    state = "keeps the structure; made if it is not there. SECRET: it holds exact counts, and is no output"
    group.add_argument("--state", metavar="FILE", help=state)
    until = "release the steps that end at or before this PUBLIC moment; later rows are left to a later run"
    group.add_argument("--until", metavar="TIME", help=until)
    expect = "refuse a FILE that is missing or an older copy: the generation that the last run told"
    group.add_argument("--expect-generation", type=int, metavar="N", help=expect)


def _plan_options(plan: argparse.ArgumentParser) -> None:
    kept = (
        "of which command: counter (count), vector (count with --key), sketch (top), range; for a join there is "
        "fg.JoinSize.suggest in Python"
    )
    plan.add_argument("structure", choices=["counter", "vector", "sketch", "range"], help=kept)
    _clock_options(plan, required=False)
    plan.add_argument("--horizon", type=int, metavar="T", help="the number of steps, instead of a clock")
    _privacy_options(plan, seed=False)
    keys = plan.add_argument_group("the keys and the stream", "What is expected; it must not come from the data.")
    keys.add_argument("--key-count", type=int, metavar="N", help="how many keys there may be: a vector's cells")
    keys.add_argument("--max-weight", type=int, default=1, metavar="W", help="the largest absolute weight of a row")
    keys.add_argument("--expected-total", type=float, metavar="N", help="of a sketch: the sum of all counts")
    skew = "of a sketch: the key at rank r has a share in proportion to 1/r^S (Zipf's law); 1 without it"
    keys.add_argument("--skew", type=float, metavar="S", help=skew)
    shape = plan.add_argument_group("the sketch")
    shape.add_argument("--width", type=int, metavar="W", help="buckets in a row, a power of two (without it: chosen)")
    shape.add_argument("--depth", type=int, metavar="D", help="rows, an odd number (with --width; default: 5)")
    _axis_options(plan, required=False)
    output = plan.add_argument_group("output")
    compare = "instead: the mechanisms beside each other, and which to choose"
    output.add_argument("--compare", action="store_true", help=compare)
    output.add_argument("--format", choices=["table", "json"], default="table", help="for people or programs")
    output.add_argument("--out", metavar="FILE", help="where to write; the terminal without it")
    output.add_argument("--plot", metavar="FILE", help="draw the error over time, horizon and shape (.png, .svg, .pdf)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fastgame",
        description="Private statistics of changing data, under one guarantee for all that is written.",
        epilog=_BEGIN,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"fastgame {fg.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=text.partition(".")[0],
            description=textwrap.fill(text, 100),
            epilog="example:\n" + _EXAMPLES[name],
            formatter_class=_Formatter,
        )
        made.set_defaults(run=run)
        return made

    count = command(
        "count",
        "Count rows so far, at every tick. All of them, or with --key and --keys those of each listed key.",
        _count,
    )
    top = command(
        "top",
        "Find the listed keys with most rows so far, at every tick. For lists that are too long to have a counter for "
        "each key: a sketch is kept. With the probability --confidence the true counts of all printed rows, at all "
        "ticks together, are between lower and upper, and a key that is separated has more rows than any listed key "
        "that is not printed. Of one that is not separated this cannot be told: the counts are too close. (If the "
        "whole list is printed, all are separated.)",
        _top,
    )
    ranges = command(
        "range",
        "Count rows so far in boxes, at every tick: with an age from 50 on, at one site, in a month. Boxes are public.",
        _range,
    )
    join = command(
        "join",
        "Estimate the size of the join of two tables so far, at every tick: the number of pairs of rows that have the "
        "same key.",
        _join,
    )
    for side in ("left", "right"):
        what = f"the {side} table: CSV, Parquet or JSON lines, or a quoted pattern"
        what += "; it may be LEFT itself, with --contributions 2 or more" if side == "right" else ""
        join.add_argument(side, metavar=side.upper(), help=what)
    keys = join.add_argument_group("the keys")
    on = "the column that is joined on; repeat it for keys of several parts"
    keys.add_argument("--on", action="append", metavar="COLUMN", required=True, help=on)
    keys.add_argument("--right-on", action="append", metavar="COLUMN", help="that of the right table, if it differs")
    for name, text in (("time", "time"), ("weight", "weight"), ("delete-time", "time of deletion")):
        keys.add_argument(f"--right-{name}", metavar="COLUMN", help=f"the {text} in the right table (see --{name})")
    for made in (count, top, ranges, join):
        _input_options(made, several=made is not join)
        if made in (count, top):
            _key_options(made)
        _clock_options(made, required=True)
        _privacy_options(made)
        _state_options(made)
        _output_options(made)
    top.add_argument("-k", type=int, default=10, metavar="K", help="how many keys")
    sure = "with what probability the true counts of all printed rows are between lower and upper"
    top.add_argument("--confidence", type=float, default=0.95, metavar="P", help=sure)
    _axis_options(ranges, required=True)
    box = "a PUBLIC box to report: 'age=0:50,site=north', either end may be empty; repeat it"
    ranges.add_argument("--box", action="append", metavar="BOX", help=box)
    ranges.add_argument("--boxes", metavar="FILE", help="a PUBLIC file with a box a line")
    for made, what in ((top, "the sketch"), (ranges, "the sketches of large components"), (join, "the two sketches")):
        shape = made.add_argument_group(what)
        width = "buckets in a row, a power of two; in more of them fewer keys collide, and more memory is taken"
        shape.add_argument("--width", type=int, default=4096, metavar="W", help=width)
        shape.add_argument("--depth", type=int, default=5, metavar="D", help="rows of buckets, an odd number")
        shape.add_argument("--hash-seed", type=int, metavar="N", help="of the hash functions; at random without it")
    plan = command(
        "plan",
        "Say what a structure would cost and how far off it would be, before there is any data. Without --width a "
        "sketch's width and depth are chosen for the expected stream.",
        _plan,
    )
    _plan_options(plan)
    shown = command(
        "inspect",
        "Show what may be shown of a file of --state: its structure, guarantee and step. No count and no noise.",
        _inspect,
    )
    shown.add_argument("state", metavar="FILE", help="a file that --state has made; it may be in use")
    shown.add_argument("--format", choices=["text", "json"], default="text", help="for people or programs")
    return parser


def _explicit(arguments: Sequence[str] | None) -> set[str]:
    """The names of the options that were given, whatever their value."""
    parser = _parser()
    for command in _commands(parser).values():
        for action in command._actions:
            action.default = argparse.SUPPRESS
    return set(vars(parser.parse_args(arguments)))


_BUDGET = ("rho", "mu", "epsilon", "delta")
#: Beyond these a budget is warned of; others than (epsilon, delta) by their epsilon at this delta.
_LARGE_EPSILON, _LARGE_DELTA, _DELTA = 20.0, 1e-3, 1e-6


def _budget(arguments: argparse.Namespace) -> fg.Budget:
    given = {name: getattr(arguments, name) for name in _BUDGET}
    given = {name: value for name, value in given.items() if value is not None}
    if set(given) == {"rho"}:
        return fg.Zcdp(given["rho"])
    if set(given) == {"mu"}:
        return fg.Gdp(given["mu"])
    if set(given) == {"epsilon", "delta"}:
        return fg.PureDp(given["epsilon"]) if given["delta"] == 0 else fg.ApproxDp(given["epsilon"], given["delta"])
    shown = " and ".join(f"--{name}" for name in given) or "nothing"
    were = "were" if len(given) > 1 else "was"
    allowed = "--rho, or --mu, or --epsilon with --delta (--delta 0 for pure privacy)"
    raise ValueError(f"the budget is {allowed}; {shown} {were} given")


def _continues(arguments: argparse.Namespace) -> bool:
    """Whether the state of an earlier run is there."""
    return getattr(arguments, "state", None) is not None and os.path.exists(arguments.state)


def _common(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that all structures take."""
    # A budget that is not given is that of the state.
    continues = _continues(arguments)
    given = any(getattr(arguments, name) is not None for name in _BUDGET)
    if getattr(arguments, "state", None) is not None and not continues and not given:
        raise ValueError(
            f"there is no state {arguments.state}, and a new one needs a budget (--rho, or --mu, or --epsilon with "
            "--delta), which is spent beside that of any other"
        )
    privacy = None if continues and not given else _budget(arguments)
    if isinstance(privacy, fg.PureDp) and arguments.mechanism != "tree":
        raise ValueError(
            f"--delta 0 has Laplace noise, for which there is no --mechanism {arguments.mechanism}: leave --mechanism "
            "out, or give a --delta above 0"
        )
    if arguments.buffers is not None and arguments.mechanism != "blt":
        also = ", and --compare then compares it with the others" if getattr(arguments, "compare", False) else ""
        raise ValueError(f"--buffers is of --mechanism blt: give that too{also}, or leave --buffers out")
    return {
        "privacy": privacy,
        "protect": arguments.protect,
        "contributions": arguments.contributions,
        "mechanism": arguments.mechanism,
        "buffers": arguments.buffers,
        "insecure_seed": getattr(arguments, "insecure_seed", None),
    }


def _warn_of_budget(arguments: argparse.Namespace) -> None:
    """Says what a budget means that protects next to nothing."""
    if all(getattr(arguments, name) is None for name in _BUDGET):
        return
    budget = _budget(arguments)
    if isinstance(budget, fg.Zcdp | fg.Gdp):
        epsilon = budget.epsilon(_DELTA)
        given = f"--rho {arguments.rho:g}" if isinstance(budget, fg.Zcdp) else f"--mu {arguments.mu:g}"
        given += f" is an epsilon of {epsilon:,.4g} at delta {_DELTA:g}, which"
    else:
        epsilon = arguments.epsilon
        given = f"--epsilon {epsilon:g}"
    if epsilon > _LARGE_EPSILON:
        _warn(
            arguments,
            f"{given} protects next to nothing: what is released may be 10^{epsilon / math.log(10):,.0f} times as "
            "likely with somebody's rows as without them (an epsilon of 1 is strong, one above 10 is weak)",
        )
    if arguments.delta is not None and arguments.delta > _LARGE_DELTA:
        _warn(
            arguments,
            f"--delta {arguments.delta:g} is large: of {1 / arguments.delta:,.0f} people one may be given away "
            "altogether, so it should be far below one in the number of people (1e-6 is usual)",
        )


def _sketched(arguments: argparse.Namespace, ticks: fg.Ticks) -> dict[str, Any]:
    """The parameters of structures that hash keys, or may."""
    return {
        "width": arguments.width,
        "depth": arguments.depth,
        "hash_seed": arguments.hash_seed,
        "max_weight": arguments.max_weight,
        "on_excess": arguments.on_excess,
        "horizon": ticks.horizon,
        **_common(arguments),
    }


def _public_list(arguments: argparse.Namespace, option: str) -> str:
    """The file of a public list. It must be none of the inputs, under whatever name: what is in them is not public."""
    from fastgame._files import expand  # noqa: PLC0415

    path: str = getattr(arguments, option)
    for read in expand(arguments.files):
        if os.path.samefile(path, read):
            same = "" if path == read else f" (as {read})"
            raise ValueError(
                f"--{option} {path} is one of the files of rows{same}: what occurs in them is not public. Give a list "
                "that would be the same if any row were not there"
            )
    return path


def _key_list(arguments: argparse.Namespace) -> Any:
    """The public list of keys, as a column or a tuple of them."""
    from fastgame._files import has_values, read_keys  # noqa: PLC0415 (need pyarrow, which the base package does not)

    if arguments.key is None or arguments.keys is None:
        raise ValueError(
            "keys need both --key (a column of the data) and --keys (the public list to report: the keys that occur in "
            "the data are not public)"
        )
    names = arguments.keys_column or arguments.key
    if len(names) != len(arguments.key):
        raise ValueError(
            f"--keys-column must stand as often as --key, {len(arguments.key)} times; {len(names)} were given"
        )
    path = _public_list(arguments, "keys")
    columns = read_keys(path, names)
    if not len(columns[0]):
        raise ValueError(f"--keys {path} has no key; give a list of at least one")
    for time in (arguments.time, arguments.delete_time):
        if time is not None and time not in names and has_values(path, time):
            _warn(
                arguments,
                f"--keys {path} has a column {time!r}, as the data have, so it looks like data: keys that occur in "
                "data are not public, and a list of them shows whose they are",
            )
    return columns if len(columns) > 1 else columns[0]


def _count(arguments: argparse.Namespace) -> None:
    keyed = arguments.key is not None or arguments.keys is not None
    ticks = fg.Ticks(arguments.start, arguments.end, arguments.every, tz=arguments.tz)
    common = {**_common(arguments), "on_excess": arguments.on_excess, "horizon": ticks.horizon}
    if keyed:
        keys = _key_list(arguments)
        size = len(keys[0] if isinstance(keys, tuple) else keys)
        common |= {"size": size, "max_norm": float(arguments.max_weight)}
        vector = _structure(arguments, fg.ContinualVector, common, digest(keys if isinstance(keys, tuple) else (keys,)))
        feed = fg.Feed(vector, key=tuple(arguments.key), weight=arguments.weight, keys=keys)
    else:
        common["max_weight"] = arguments.max_weight
        feed = fg.Feed(_structure(arguments, fg.ContinualCounter, common), weight=arguments.weight)
    _release(arguments, ticks, feed)


def _top(arguments: argparse.Namespace) -> None:
    ticks = fg.Ticks(arguments.start, arguments.end, arguments.every, tz=arguments.tz)
    keys = _key_list(arguments)
    sketch = _structure(arguments, fg.CountSketch, _sketched(arguments, ticks))
    listed = len(keys[0] if isinstance(keys, tuple) else keys)
    feed = fg.Feed(
        sketch,
        key=tuple(arguments.key),
        weight=arguments.weight,
        keys=keys,
        top=min(arguments.k, listed),
        confidence=arguments.confidence,
    )
    _release(arguments, ticks, feed)


def _join(arguments: argparse.Namespace) -> None:
    from fastgame._files import expand, identity  # noqa: PLC0415

    ticks = fg.Ticks(arguments.start, arguments.end, arguments.every, tz=arguments.tz)
    given = _sketched(arguments, ticks)
    left, right = ({identity(path): path for path in expand([side])} for side in (arguments.left, arguments.right))
    # With a state that is there, one that is not given is its own.
    both = [path for file, path in left.items() if file in right]
    if not _continues(arguments) or "contributions" in arguments.explicit:
        _check_self_join(both, arguments.contributions)
    join = _structure(arguments, fg.JoinSize, given)
    if not (arguments.check and _continues(arguments)):  # then the state, which says it, is not opened
        _check_self_join(both, join.contributions)
    columns = {
        "time": arguments.time,
        "key": tuple(arguments.on),
        "weight": arguments.weight,
        "delete_time": arguments.delete_time,
        "right_time": arguments.right_time or arguments.time,
        "right_key": tuple(arguments.right_on or arguments.on),
        "right_weight": arguments.right_weight,
        "right_delete_time": arguments.right_delete_time,
    }

    def read(side: str, path: str, counts: fg.RowCounts) -> Files:
        time, key, weight, gone = (columns[side + name] for name in ("time", "key", "weight", "delete_time"))
        times = [time] if gone is None else [time, gone]
        return _files(arguments, [path], times, list(key), [] if weight is None else [weight], counts)

    if arguments.check:
        from fastgame._feeds import join_sinks  # noqa: PLC0415

        feeds = [fg.Feed(join, key=columns[f"{side}key"], weight=columns[f"{side}weight"]) for side in ("", "right_")]
        sinks = join_sinks(feeds[0], feeds[1], ticks)
        sides = [
            (functools.partial(read, side, path), columns[f"{side}time"], columns[f"{side}delete_time"], sink)
            for side, path, sink in zip(("", "right_"), (arguments.left, arguments.right), sinks, strict=True)
        ]
        _check(arguments, ticks, join, sides)
        return

    def replay(counts: fg.RowCounts, progress: _Progress, **how: Any) -> Any:
        left = progress.rows(read("", arguments.left, counts))
        right = progress.rows(read("right_", arguments.right, counts))
        return fg.replay_join(left, right, ticks, join, counts=counts, progress=progress.steps, **columns, **how)

    note = None
    if both:
        unit = "1 row" if join.contributions < 4 else f"{join.contributions // 2} rows"
        note = f"of {both[0]} that is {unit}, as a row of it stands on both sides and counts twice"
    _write(arguments, replay, join, note)


def _check_self_join(both: Sequence[str], contributions: int) -> None:
    """Refuses a file on both sides whose rows are not protected as the two that they are then."""
    if both and contributions < 2:
        raise ValueError(
            f"{both[0]} is on both sides, so that each of its rows is two: --contributions must be at least 2 (twice "
            f"the rows that one person may have in the file); it is {contributions}"
        )


def _axes(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of a range counter that are options of their own."""
    levels: Any = arguments.levels
    if levels != "dyadic":
        try:
            levels = int(levels)
        except ValueError:
            raise ValueError(f"--levels must be dyadic, or an integer from 1 to 8; {levels!r} was given") from None
    axes = [axis_of(text, arguments.tz) for text in arguments.axis]
    return {"axes": axes, "levels": levels, "estimator": arguments.estimator}


def _range(arguments: argparse.Namespace) -> None:
    ticks = fg.Ticks(arguments.start, arguments.end, arguments.every, tz=arguments.tz)
    own = _axes(arguments)
    texts = list(arguments.box or [])
    if arguments.boxes is not None:
        with open(_public_list(arguments, "boxes"), encoding="utf-8-sig") as file:
            texts += [line.strip() for line in file if line.strip()]
    if not texts:
        raise ValueError("name the boxes to report, each with --box, or in a file with --boxes")
    if len(set(texts)) < len(texts):
        raise ValueError("a box stands twice among those to report")
    by_name = {axis.name: axis for axis in own["axes"]}
    boxes = {text: box_of(text, by_name) for text in texts}
    counter = _structure(arguments, fg.RangeCounter, {**own, **_sketched(arguments, ticks)})
    _release(arguments, ticks, fg.Feed(counter, weight=arguments.weight, boxes=boxes))


def _plan(arguments: argparse.Namespace) -> None:
    clock = [arguments.start, arguments.end, arguments.every]
    if (arguments.horizon is None) == (None in clock) or (arguments.horizon is not None and any(clock)):
        raise ValueError("the time is --horizon, or --start, --end and --every; give one of them, and whole")
    horizon = arguments.horizon
    if horizon is None:
        horizon = fg.Ticks(*clock, tz=arguments.tz).horizon
    _refuse_unused(arguments)
    common = {**_common(arguments), "horizon": horizon}
    profile = None
    if arguments.structure == "counter":
        plan = fg.ContinualCounter.plan(max_weight=arguments.max_weight, **common)
    elif arguments.structure == "vector":
        if arguments.key_count is None:
            raise ValueError("a vector has a cell for each key: say how many with --key-count")
        plan = fg.ContinualVector.plan(arguments.key_count, max_norm=float(arguments.max_weight), **common)
    elif arguments.structure == "range":
        if not arguments.axis:
            raise ValueError("a range counter has axes: name each with --axis")
        given = {name: getattr(arguments, name) for name in ("width", "depth")}
        shape = {name: value for name, value in given.items() if value is not None}
        plan = fg.RangeCounter.plan(max_weight=arguments.max_weight, **_axes(arguments), **shape, **common)
    else:
        plan, profile = _plan_sketch(arguments, common)
    if arguments.plot is not None:
        from fastgame._plot import check_picture  # noqa: PLC0415

        check_picture(arguments.plot)
        plan.plot(arguments.plot, profile=profile)
    vector = None
    if arguments.structure == "sketch" and arguments.key_count is not None:
        vector = plan.fits_in_vector(arguments.key_count)
    if arguments.compare:
        comparison = plan.compare(profile=profile)
        text = comparison_as_json(comparison) if arguments.format == "json" else str(comparison)
    else:
        text = (as_json if arguments.format == "json" else as_text)(plan, profile, vector)
    _warn_of_budget(arguments)
    write_text(text + "\n", arguments.out)


def _refuse_unused(arguments: argparse.Namespace) -> None:
    """An option that would do nothing is a mistake."""
    used = {"counter": [], "vector": ["key_count"]}.get(arguments.structure)
    if used is None:
        return
    for name in ("key_count", "expected_total", "skew", "width", "depth"):
        if name not in used and getattr(arguments, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} says nothing of a {arguments.structure}; leave it out")


def _plan_sketch(arguments: argparse.Namespace, common: dict[str, Any]) -> tuple[fg.Plan, fg.FrequencyProfile | None]:
    """The plan of a sketch, of the given shape or a suggested one, and the stream that is expected."""
    common["max_weight"] = arguments.max_weight
    profile = None
    if arguments.expected_total is not None:
        if not 1 <= arguments.expected_total <= 2.0**53:
            raise ValueError(f"--expected-total must be from 1 to 2^53; {arguments.expected_total:g} was given")
        # Without a number of keys: as many as the total allows.
        keys = arguments.key_count
        if keys is None:
            keys = round(arguments.expected_total)
        exponent = 1.0 if arguments.skew is None else arguments.skew
        profile = fg.FrequencyProfile.zipf(total=arguments.expected_total, keys=keys, exponent=exponent)
    if arguments.width is not None:
        depth = 5 if arguments.depth is None else arguments.depth
        return fg.CountSketch.plan(width=arguments.width, depth=depth, **common), profile
    if profile is None:
        raise ValueError("the shape of a sketch is --width (and --depth), or is chosen for an --expected-total")
    if arguments.depth is not None:
        raise ValueError("--depth goes with --width; without them both are chosen")
    return fg.CountSketch.suggest(profile=profile, **common), profile


def _inspect(arguments: argparse.Namespace) -> None:
    found, job = overview(arguments.state)
    write_text(
        (state_as_json if arguments.format == "json" else state_as_text)(arguments.state, found, job) + "\n", None
    )


def _structure(
    arguments: argparse.Namespace, kind: type[Any], parameters: dict[str, Any], keys: str | None = None
) -> Any:
    """The structure: new in memory, or that of --state, which is made if it is not there."""
    _check_files(arguments)
    if arguments.check and parameters["privacy"] is None:
        parameters = {**parameters, "privacy": fg.Zcdp(rho=1.0)}  # that of the state, which is not opened
    if arguments.state is None or arguments.check:
        return kind(**parameters)
    options_of = {"max_norm": {"max_weight"}, "axes": {"axis"}, "privacy": set(_BUDGET)}
    given = {word for word in parameters if options_of.get(word, {word}) & arguments.explicit} | {"horizon", "size"}
    names = {word: f"--{word.replace('_', '-')}" for word in (*parameters, "start", "end", "every", "tz")}
    names |= {"max_norm": "--max-weight", "axes": "--axis", "privacy": f"a budget (--{', --'.join(_BUDGET)})"}
    names |= {"horizon": "a horizon (--start, --end, --every)", "size": "a number of --keys", "keys": "--keys"}
    job = Job({name: getattr(arguments, name) for name in ("start", "end", "every", "tz")}, keys)
    structure, is_new = open_job(arguments.state, kind, parameters, given, job, names, arguments.expect_generation)
    if is_new:
        _tell(f"made a new state {arguments.state} (there was none)")
    return structure


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuses files that cannot be written or must not be, before anything is made or read."""
    from fastgame._output import format_of  # noqa: PLC0415

    if arguments.state is None:
        for name in ("until", "expect_generation"):
            if getattr(arguments, name) is not None:
                raise ValueError(
                    f"--{name.replace('_', '-')} goes with --state: without it nothing is kept to go on with, and the "
                    "next run would spend the budget anew"
                )
    elif arguments.until is None:
        raise ValueError(
            "--state needs --until, the public moment up to which steps are released, as --until 2026-01-31 or "
            '--until "$(date +%F)": steps that were released take no more rows'
        )
    format_of(arguments.format, arguments.out)
    if arguments.plot is not None:
        from fastgame._plot import check_picture  # noqa: PLC0415

        check_picture(arguments.plot)
    _refuse_overwriting(arguments)


def _release(arguments: argparse.Namespace, ticks: fg.Ticks, feed: fg.Feed) -> None:
    """Releases what one structure counts of one table."""

    def rows(counts: fg.RowCounts) -> Files:
        return _files(arguments, arguments.files, *_columns(arguments, feed), counts)

    if arguments.check:
        from fastgame._feeds import sink_of  # noqa: PLC0415

        sides = [(rows, arguments.time, arguments.delete_time, sink_of(feed, ticks))]
        _check(arguments, ticks, feed.structure, sides)
        return

    def replay(counts: fg.RowCounts, progress: _Progress, **how: Any) -> Any:
        return fg.replay(
            progress.rows(rows(counts)),
            ticks,
            feed,
            time=arguments.time,
            delete_time=arguments.delete_time,
            counts=counts,
            progress=progress.steps,
            **how,
        )

    _write(arguments, replay, feed.structure)


def _check(arguments: argparse.Namespace, ticks: fg.Ticks, structure: Any, sides: Iterable[Any]) -> None:
    """Says what would be read, and releases nothing. With counts that are not private, reads all rows for them."""
    from fastgame._check import Input, count, lines_of  # noqa: PLC0415
    from fastgame._values import Times  # noqa: PLC0415

    counts = fg.RowCounts()
    inputs = [
        Input(read(counts), Times(ticks, time, gone, arguments.time_format), [sink]) for read, time, gone, sink in sides
    ]
    text = "".join(line for one in inputs for line in lines_of(one))
    last = ticks.time(ticks.horizon)
    clock = f"the clock has {ticks.horizon:,} steps, from {ticks.start.isoformat()} to {last.isoformat()}\n"
    # Without a budget it is that of the state, which is not opened.
    has_budget = any(getattr(arguments, name) is not None for name in _BUDGET)
    spent = f"all that is released, however it is combined, would be {_promise(structure)}\n" if has_budget else ""
    write_text(f"{text}{clock}{spent}no row was used and nothing was released\n", None)
    if arguments.not_private_counts:
        for one in inputs:
            count(one, counts)
        _tell_counts(counts)


def _write(arguments: argparse.Namespace, replay: Callable[..., Any], structure: Any, note: str | None = None) -> None:
    """Reads the files, releases at each tick, writes; a note belongs to the guarantee.

    What is written is made whole first, beside its place; then the state is written; then the outputs are let out. So
    no answer leaves that the state does not know, and a full disk loses none that it does.
    """
    from fastgame._output import format_of, staged  # noqa: PLC0415

    _warn_of_budget(arguments)
    counts = fg.RowCounts()
    shown = not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()
    before = _done(structure)
    outputs: list[Staged] = []
    unit = Unit([structure])
    try:
        with unit:
            with _Progress(shown, arguments.not_private_counts) as progress:
                table = replay(
                    counts,
                    progress,
                    release_every=arguments.release_every,
                    time_format=arguments.time_format,
                    bad_rows="raise" if arguments.fail_on_bad_rows else "drop",
                    until=arguments.until,
                    resume=arguments.state is not None,
                )
            # What is there has more steps than the last one, which alone can be written again.
            is_again = arguments.state is not None and _done(structure) == before
            left = [path for path in (arguments.out, arguments.plot) if is_again and _has_content(path)]
            if arguments.plot is not None and arguments.plot not in left:
                outputs.append(_picture(table, arguments.plot, structure))
            if arguments.out is None or arguments.out not in left:
                outputs.append(staged(table, format_of(arguments.format, arguments.out), arguments.out))
            with waiting_signals() as waiting:
                unit.commit()
                arguments.is_committed = arguments.state is not None
                _publish([output for output in outputs if output.is_file], arguments.is_committed)
            if waiting:
                raise KeyboardInterrupt
        _publish([output for output in outputs if not output.is_file], arguments.is_committed)
    finally:
        unit.end()
        for output in outputs:
            output.forget()
    for path in left:
        _tell(f"{path} is there and was left as it is; to have the last release again, name another file")
    # Not before: what could not be written was not released.
    if not arguments.quiet:
        if arguments.not_private_counts:
            _tell_counts(counts)
        elif not arguments.fail_on_bad_rows:
            _tell("rows that could not be used, if any, were left out (--not-private-counts tells you how many)")
        _tell_guarantee(structure)
        if note is not None:
            _tell(note)
        if arguments.state is not None:
            _tell_state(structure, is_again, table.num_rows, len(outputs))
    if arguments.state is not None:
        structure.close()


def _done(structure: Any) -> int:
    """How many steps were released."""
    done: int = structure.now if structure.sealed else structure.now - 1
    return done


def _has_content(path: str | None) -> bool:
    """Whether there is a file that somebody may want."""
    return path is not None and os.path.isfile(path) and os.path.getsize(path) > 0


def _picture(table: pa.Table, path: str, structure: Any) -> Staged:
    """A picture that is to be written to a file."""
    from fastgame._plot import draw_releases  # noqa: PLC0415

    form = os.path.splitext(path)[1][1:].lower()
    return Staged(lambda file: draw_releases(table, file, form, structure), path)


def _publish(outputs: Sequence[Staged], is_committed: bool) -> None:
    """Lets outputs out. What the state knows of already is kept where it cannot."""
    for place, output in enumerate(outputs):
        try:
            output.publish()
        except OSError as error:
            kept = [name for name in (each.keep() for each in outputs[place:]) if name] if is_committed else []
            if not kept:
                raise
            raise OSError(f"{error}; what was to be written is kept in {' and '.join(kept)}") from error


def _columns(arguments: argparse.Namespace, feed: fg.Feed) -> tuple[list[str], list[str], list[str]]:
    """What is read of the files: times and numbers as they stand there, keys and categories as text."""
    times = [name for name in (arguments.time, arguments.delete_time) if name]
    keys = list(feed.key or ())
    numbers = [arguments.weight] if arguments.weight else []
    for axis in getattr(feed.structure, "axes", None) or ():
        column = times if isinstance(axis, Datetime) else keys if isinstance(axis, StrCategory) else numbers
        column.append(axis.name)
    return times, keys, numbers


def _files(
    arguments: argparse.Namespace,
    paths: Sequence[str],
    times: list[str],
    keys: list[str],
    numbers: list[str],
    counts: fg.RowCounts,
) -> Files:
    from fastgame._files import Columns, Files  # noqa: PLC0415

    return Files(
        paths,
        Columns(times, keys, numbers),
        counts=counts,
        kind=arguments.input_format,
        delimiter=arguments.delimiter,
        multiline=arguments.multiline,
        strict=arguments.fail_on_bad_rows,
    )


def _refuse_overwriting(arguments: argparse.Namespace) -> None:
    """What is written must not replace what is read, nor one of them another."""
    from fastgame._files import expand  # noqa: PLC0415

    tables = [arguments.files] if hasattr(arguments, "files") else [[arguments.left], [arguments.right]]
    listed = [getattr(arguments, name, None) for name in ("keys", "boxes")]
    inputs = [path for table in tables for path in expand(table)]
    read = {os.path.realpath(path) for path in [*inputs, *filter(None, listed)]}
    given = {f"--{name}": getattr(arguments, name) for name in ("out", "plot", "state")}
    written = {option: os.path.realpath(path) for option, path in given.items() if path is not None}
    for option, path in written.items():
        if path in read:
            raise ValueError(f"{path} is read; name another file for {option}")
        for other, its_path in written.items():
            if other != option and its_path == path:
                raise ValueError(f"{option} and {other} name the same file")


class _Progress:
    """Bars on the operator's terminal: what is read, then steps. Of rows, whose number is not private, if `counted`."""

    def __init__(self, shown: bool, counted: bool) -> None:
        self._counted = counted
        self._bars: Any = None
        self._bar: Any = None
        if shown:
            from tqdm import tqdm  # noqa: PLC0415 (only where there is a terminal)

            self._bars = tqdm

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def rows(self, files: Files) -> Iterator[pa.RecordBatch]:
        """The batches of files, while they are read."""
        if self._bars is None:
            yield from files
            return
        (first, _), *more = files.files
        name = f"reading {first}" + (f" and {len(more)} more" if more else "")
        how = {"desc": f"{name} (not private)", "unit": " rows", "unit_scale": True}
        if not self._counted:
            how = {"bar_format": f"{name.replace('{', '{{').replace('}', '}}')} {{elapsed}}"}
        with self._bars(leave=False, **how) as bar:
            for batch in files:
                yield batch
                bar.update(batch.num_rows)

    def steps(self, done: int, all_steps: int) -> None:
        """Shows the step that was released."""
        if self._bars is None:
            return
        if self._bar is None:
            self._bar = self._bars(total=all_steps, desc="releasing", unit=" steps", leave=False)
        self._bar.update(done - self._bar.n)


def _tell(line: str) -> None:
    """Tells the operator, if there is somebody: what was done is done, whether or not it can be told."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _warn(arguments: argparse.Namespace, sentence: str) -> None:
    """Tells the operator of something that is allowed, and most often wrong."""
    if not getattr(arguments, "quiet", False):
        _tell(f"fastgame {arguments.command}: warning: {sentence}")


def _tell_counts(counts: fg.RowCounts) -> None:
    """Tells the operator, who may know."""
    dropped = ", ".join(f"{count:,} ({reason})" for reason, count in counts.dropped.items())
    tail = f"left out were {dropped}" if dropped else "all were used"
    _tell(f"not private: {counts.read:,} row{'s were' if counts.read != 1 else ' was'} read, {tail}")
    # That rows are those of other runs is as it should be.
    elsewhere = sum(counts.dropped.get(reason, 0) for reason in (BEFORE_RUN, AFTER_RUN))
    if counts.read > elsewhere and sum(counts.dropped.values()) >= counts.read:
        _tell("not private: NO ROW COULD BE USED; look at --time, --start and --end, --key and --weight")


def _promise(structure: Any) -> str:
    """What is spent by all releases of a structure, and on whom."""
    budget = structure.privacy
    promise = f"{guarantee(budget)} ({BOUND})" if isinstance(budget, fg.PureDp) else guarantee(budget)
    if isinstance(budget, fg.Zcdp):
        promise = f"{as_given(budget.rho)}-zCDP, {promise}"
    elif not isinstance(budget, fg.PureDp):
        promise = f"{upward(budget.rho, 6)}-zCDP, {promise}"
    unit = unit_of(structure)
    return f"{promise}, for {unit}"


def _tell_guarantee(structure: Any) -> None:
    """States what was spent."""
    if structure.insecure_seed is not None:
        _tell("INSECURE: the seed is known, and with it the noise: publish nothing of this run")
    _tell(f"all that was released, however it is combined, is {_promise(structure)}")


def _tell_state(structure: Any, is_again: bool, rows: int, outputs: int) -> None:
    """Says where the state stands. The steps are public."""
    if not rows:
        _tell("no step was due for release up to --until")
    elif is_again and outputs:
        _tell("no step was left to do up to --until; what was released last was released again")
    elif is_again:
        _tell("no step was left to do up to --until")
    _tell(
        f"the state is at generation {structure.generation}, with {_done(structure):,} of {structure.horizon:,} steps "
        "done (note it for --expect-generation, which refuses an older copy)"
    )


def process() -> None:
    """Runs the command line, and ends the process with its exit code.

    At once, without what Python does at the end: threads of Arrow may abort the process there, after all was written
    (apache/arrow#34314).
    """
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        # Full, or closed: said as Python says it.
        sys.exit(code)
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the process without it.

    Returns
    -------
    int
        0; 2 if something was refused, with a line on the standard error; 130 if interrupted.
    """
    given = _parsed(arguments)
    prog = f"fastgame {given.command}"
    given.is_committed = False
    if getattr(given, "state", None) is not None:
        given.explicit = _explicit(arguments)
    try:
        from pyarrow import ArrowException  # noqa: PLC0415
    except ImportError:
        _tell(f'{prog}: error: the command line needs pyarrow: pip install "fastgame-dp[cli]"')
        return _EXIT_REFUSED
    try:
        with _stopped_by_signals():
            given.run(given)
    except BrokenPipeError:
        # The reader has gone, which is its right; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not given.is_committed:
            return 0
        _tell(f"{prog}: error: the reader of the output has gone; {_COMMITTED}")
        return _EXIT_REFUSED
    except KeyboardInterrupt:
        _tell(f"{prog}: interrupted; {_COMMITTED if given.is_committed else 'nothing was written'}")
        return 130
    except (
        fg.FastgameError,
        ValueError,
        TypeError,
        ArithmeticError,
        OSError,
        MemoryError,
        ImportError,
        ArrowException,
    ) as error:
        message = " ".join(_in_words(error).split()) or "out of memory"
        for name, option in _OPTIONS.items():
            message = message.replace(name, option)
        _tell(f"{prog}: error: {message}{f'; {_COMMITTED}' if given.is_committed else ''}")
        return _EXIT_REFUSED
    return 0


def _in_words(error: BaseException) -> str:
    """What an error says. Of one of the system the number says nothing to people."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {error.filename!r}"
    return str(error)


_COMMITTED = "the state was written: the same command releases its last step again"


#: What the library calls its parameters, and this program.
_OPTIONS = {
    "(bad_rows='drop')": "(without --fail-on-bad-rows)",
    "release_every": "--release-every",
    "buffers must": "--buffers must",
    "insecure_seed": "--insecure-seed",
    "hash_seed": "--hash-seed",
    "time_format": "--time-format",
    "delete_time": "--delete-time",
    'protect="lifetime"': "--protect lifetime",
    "expect_generation": "--expect-generation",
    "until must": "--until must",
    "max_weight": "--max-weight",
    "max_norm": "--max-weight",
    "top must be": "-k must be",
    "give them one with tz= (Ticks) or --tz": "give the clock one, as --tz UTC",
    "give it one, or make ticks without a zone": "give it one, or leave --tz out",
}


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Lets a request to end clean up as an interruption does: temporary files hold rows."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread, which alone may
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

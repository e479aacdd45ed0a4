"""Copies, forks, secrets in messages, subclassing: what a live mechanism must refuse."""

from __future__ import annotations

import copy
import functools
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import counter, meanwhile, raised_by, read, vector, whole, write

import fastgame as fg

PRIVACY = fg.Zcdp(rho=0.01)
BASE: dict[str, Any] = {"horizon": 8, "privacy": PRIVACY}


def make_counter(**parameters: Any) -> Any:
    return fg.ContinualCounter(**{**BASE, **parameters})


def make_vector(**parameters: Any) -> Any:
    return fg.ContinualVector(20, **{**BASE, **parameters})


def make_sketch(**parameters: Any) -> Any:
    return fg.CountSketch(width=16, **{"hash_seed": 1, **BASE, **parameters})


def make_range(**parameters: Any) -> Any:
    return fg.RangeCounter(shape=20, width=1, depth=1, **{"hash_seed": 1, **BASE, **parameters})


def make_join(**parameters: Any) -> Any:
    return fg.JoinSize(width=32, depth=1, **{"hash_seed": 1, **BASE, **parameters})


MAKERS: list[Callable[..., Any]] = [make_counter, make_vector, make_sketch, make_range, make_join]
STRUCTURES = pytest.mark.parametrize("make", MAKERS)


def named(make: Callable[..., Any], name: str, **parameters: Any) -> Any:
    """A maker with parameters, as a case of a table."""
    return pytest.param(functools.partial(make, **parameters), id=f"{make.__name__} {name}")


# Every structure under every kind of noise.
NOISES = pytest.mark.parametrize(
    "make",
    [
        *MAKERS,
        *(named(make, "blt", mechanism="blt") for make in MAKERS),
        *(named(make, "pure", privacy=fg.PureDp(0.1)) for make in MAKERS),
    ],
)


def pickle_by(protocol: int) -> Callable[[Any], Any]:
    return lambda structure: pickle.dumps(structure, protocol)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a list": lambda structure: copy.deepcopy([structure]),
    **{f"pickle protocol {protocol}": pickle_by(protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
    "pickle in a dict": lambda structure: pickle.dumps({"a": structure}),
}


@NOISES
@pytest.mark.parametrize("how", COPIES)
def test_a_live_mechanism_is_not_copied(make: Callable[[], Any], how: str) -> None:
    structure = make()
    before = read(structure)
    with pytest.raises(fg.CopyError, match=r"cannot be copied or pickled: .* second release"):
        COPIES[how](structure)
    assert np.array_equal(read(structure), before)


@NOISES
def test_no_back_door_of_the_copy_protocol_makes_a_second_mechanism(make: Callable[[], Any]) -> None:
    structure = make()
    kind: Any = type(structure)
    back_doors: list[Callable[[], Any]] = [
        structure.__reduce__,
        lambda: structure.__reduce_ex__(4),
        lambda: object.__reduce_ex__(structure, 4),
        lambda: object.__reduce__(structure),
        lambda: object.__new__(kind),
        lambda: kind.__new__(kind),
        lambda: fg.Structure.__new__(kind),
        lambda: copy.replace(structure) if hasattr(copy, "replace") else copy.copy(structure),
        lambda: structure.__setstate__({}),
    ]
    for back_door in back_doors:
        assert isinstance(raised_by(back_door), (TypeError, AttributeError))


def test_a_copy_error_is_a_type_error_and_the_classes_are_as_documented() -> None:
    for error, bases in {
        fg.HorizonError: (ValueError,),
        fg.IncompatibleError: (ValueError,),
        fg.StateError: (ValueError,),
        fg.SealedStepError: (RuntimeError,),
        fg.CopyError: (TypeError,),
        fg.EntropyError: (OSError,),
    }.items():
        assert issubclass(error, fg.FastgameError)
        assert issubclass(error, bases)
        assert error.__module__ == "fastgame"


def in_a_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a forked child, as JSON through a pipe; the child dies after 20 seconds."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            os.close(receiving)
            with os.fdopen(sending, "w") as pipe:
                json.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the child failed or hung"
    return json.loads(text)


def name_of_error(call: Callable[[], Any]) -> str:
    return type(raised_by(call)).__name__


def uses_of(structure: Any) -> list[Callable[[], Any]]:
    """Every way to use a structure."""
    own: list[Callable[[], Any]] = []
    if isinstance(structure, fg.CountSketch):
        raw = fg.RawSketch(width=16, hash_seed=1)
        own = [
            structure.raw,
            structure.second_moment,
            lambda: structure.merge(raw),
            lambda: structure.estimate(1, error=True),
            lambda: structure.estimate([1], confidence=0.9),
            lambda: structure.top(1, among=[1, 2]),
        ]
    if isinstance(structure, fg.RangeCounter):
        own = [
            lambda: structure.insert([1]),
            lambda: structure.delete(1),
            lambda: structure.count(0, 5),
            lambda: structure.count([0], [5], error=True),
            lambda: structure.quantile(0.5),
            lambda: structure.cdf(3),
            lambda: structure.heavy_hitters(5.0),
            lambda: structure.marginal(0),
        ]
    if isinstance(structure, fg.JoinSize):
        raw = fg.RawSketch(width=32, depth=1, hash_seed=1)
        own = [
            lambda: structure.left.update(1),
            lambda: structure.right.update([1, 2]),
            lambda: structure.left.merge(raw),
            lambda: structure.right.merge(raw),
            lambda: structure.estimate(error=True),
            lambda: structure.estimate(confidence=0.9),
            lambda: repr(structure.left),
        ]
    return [
        *own,
        lambda: read(structure),
        lambda: write(structure, 1),
        structure.advance,
        lambda: structure.advance(to=5),
        structure.noise_std,
        lambda: structure.now,
        lambda: structure.sealed,
        lambda: structure.memory,
        lambda: structure.dropped,
        lambda: repr(structure),
        lambda: copy.copy(structure),
        lambda: pickle.dumps(structure),
    ]


@NOISES
def test_a_forked_child_cannot_use_its_copy(make: Callable[[], Any]) -> None:
    structure = make()
    write(structure, 1)
    names = in_a_child(lambda: [name_of_error(use) for use in uses_of(structure)])
    assert set(names) == {"CopyError"}
    message = in_a_child(lambda: str(raised_by(lambda: read(structure))))
    assert "fork" in message
    assert "make a new one" in message
    structure.advance()
    read(structure)


def test_parameters_can_still_be_read_in_a_child() -> None:
    structure = make_vector(insecure_seed=3)
    read = in_a_child(lambda: [structure.horizon, structure.size, structure.insecure_seed, structure.privacy.rho])
    assert read == [8, 20, 3, 0.01]
    assert in_a_child(lambda: fg.total(structure, PRIVACY).rho) == 0.02


def test_a_grandchild_cannot_use_its_copy_either() -> None:
    structure = make_counter()
    assert in_a_child(lambda: in_a_child(lambda: name_of_error(structure.release))) == "CopyError"


@NOISES
def test_a_new_structure_in_a_child_works_and_has_noise_of_its_own(make: Callable[[], Any]) -> None:
    def noise() -> list[float]:
        return [float(value) for _ in range(20) for value in np.atleast_1d(read(make()))]

    # Noise of standard deviation 14 on a lattice of step 1/8 or so: 20 values in a row do not agree by chance
    # (probability < 10^-30). Rejects a generator whose state a fork copies.
    draws = [noise(), in_a_child(noise), in_a_child(noise), in_a_child(lambda: in_a_child(noise)), noise()]
    assert len({tuple(draw) for draw in draws}) == len(draws)


def test_a_fork_while_another_thread_holds_the_lock_does_not_hang() -> None:
    cells = fg.ContinualVector(2_000_000, horizon=100, privacy=PRIVACY)

    def work() -> None:
        cells.release()
        cells.advance()

    with meanwhile(work):
        for _ in range(5):
            time.sleep(0.03)
            assert in_a_child(lambda: name_of_error(cells.release)) == "CopyError"


def child_of_multiprocessing(structure: Any, sending: Any) -> None:
    sending.send((name_of_error(structure.release), make_counter().release()))


def test_multiprocessing_by_fork_meets_the_same_error() -> None:
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=child_of_multiprocessing, args=(make_counter(), sending))
    child.start()
    name, released = receiving.recv()
    child.join(20)
    assert child.exitcode == 0
    assert name == "CopyError"
    assert isinstance(released, float)


def test_multiprocessing_by_spawn_cannot_send_a_structure() -> None:
    context = multiprocessing.get_context("spawn")
    _, sending = context.Pipe(duplex=False)
    with pytest.raises(fg.CopyError):
        context.Process(target=child_of_multiprocessing, args=(make_counter(), sending)).start()


@NOISES
def test_repr_shows_parameters_and_the_step_and_no_data(make: Callable[..., Any]) -> None:
    silent, busy = make(contributions=2), make(contributions=2)
    assert repr(silent) == repr(busy)
    for step in range(1, 9):
        busy.advance(to=step)
        for _ in range(step):
            write(busy, 0)
        before = repr(busy)
        read(busy)
        assert repr(busy) == before == str(busy) == f"{busy}"
        silent.advance(to=step)
        assert repr(silent) == before
        assert f"at step {step}" in before
    for shown in ["horizon=8", f"privacy={busy.privacy!r}", "contributions=2", type(busy).__name__]:
        assert shown in repr(busy)


def test_memory_does_not_depend_on_data() -> None:
    silent, busy = make_vector(), make_vector()
    busy.update(range(4), 0.5)
    silent.release([1, 2])
    busy.release([1, 2])
    assert silent.memory == busy.memory


def test_messages_show_no_counter_and_no_noise() -> None:
    count = counter(max_weight=1000)
    for _ in range(777):
        count.update(1000)
    shown = [repr(count), str(raised_by(lambda: count.update(1001))), str(raised_by(lambda: count.advance(to=0)))]
    released = count.release()
    shown += [repr(count), str(raised_by(lambda: count.update(1))), str(raised_by(lambda: copy.copy(count)))]
    for message in shown:
        assert "777" not in message
        assert str(released) not in message


@pytest.mark.parametrize("name", ["rho", "epsilon", "seed", "max_norm", "Horizon", "sizes", ""])
def test_an_unknown_keyword_is_named_beside_those_that_are_known(name: str) -> None:
    hint = r" \(did you mean \"horizon\"\?\)" if name == "Horizon" else ""
    for make in [fg.ContinualCounter, fg.ContinualCounter.plan]:
        given: Any = {name: 1}
        with pytest.raises(
            TypeError, match=rf"no argument \"{name}\"{hint}; the keyword arguments are max_weight and horizon, "
        ):
            make(horizon=8, privacy=PRIVACY, **given)


def test_missing_and_positional_arguments_are_refused() -> None:
    make_any: Any
    for make_any in [fg.ContinualCounter, fg.ContinualCounter.plan]:
        with pytest.raises(TypeError, match=r"missing the keyword argument \"horizon\""):
            make_any(privacy=PRIVACY)
        with pytest.raises(TypeError, match=r"missing the keyword argument \"privacy\""):
            make_any(horizon=8)
        with pytest.raises(TypeError, match="positional"):
            make_any(8, PRIVACY)
    for make_any in [fg.ContinualVector, fg.ContinualVector.plan]:
        with pytest.raises(TypeError, match="'size'"):
            make_any(horizon=8, privacy=PRIVACY)
        with pytest.raises(TypeError, match="positional"):
            make_any(3, 8, PRIVACY)
        assert make_any(size=3, horizon=8, privacy=PRIVACY)


WORDS = {
    "mechanism": ("tree", "tree-paper", "blt"),
    "protect": ("update", "lifetime"),
    "on_excess": ("error", "clip"),
    "invalid": ("raise", "drop"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_word_that_is_none_of_the_allowed_is_refused_with_them(name: str) -> None:
    allowed = " or ".join(f'"{word}"' for word in WORDS[name])
    given: Any
    for given in ["", "Tree", "update ", "forest", "BLT", "error\0", "é"]:
        with pytest.raises(ValueError, match=rf"{name} must be {allowed}; .* was given"):
            fg.ContinualCounter(horizon=8, privacy=PRIVACY, **{name: given})
    for given in [None, 1, b"tree", True, ["tree"], fg.Zcdp]:
        with pytest.raises(TypeError, match=rf"{name} must be {allowed}; .* was given"):
            fg.ContinualCounter(horizon=8, privacy=PRIVACY, **{name: given})


@pytest.mark.parametrize("privacy", [0.5, None, "0.5", fg.Zcdp, (0.5,), {"rho": 0.5}, np.float64(0.5)], ids=str)
def test_a_privacy_that_is_no_budget_is_refused_with_the_budgets(privacy: Any) -> None:
    with pytest.raises(TypeError, match=r"privacy must be a budget: fastgame.Zcdp\(rho=...\).* was given"):
        fg.ContinualVector(3, horizon=8, privacy=privacy)


@pytest.mark.parametrize("rho, hint", [(1e300, "lower the budget"), (1e-300, "raise the budget")])
def test_a_budget_that_gives_no_usable_noise_is_refused_with_the_direction(rho: float, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"the noise scale must be .*{hint}.* was given"):
        fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(rho))


def test_structures_are_made_by_their_own_classes_alone() -> None:
    made: Any
    for made in [fg.Structure, fg.Budget, fg.Plan, fg.JoinSide]:
        with pytest.raises(TypeError, match="cannot create"):
            made()
    for final in [
        fg.ContinualCounter,
        fg.ContinualVector,
        fg.CountSketch,
        fg.RangeCounter,
        fg.JoinSize,
        fg.JoinSide,
        fg.JoinProfile,
        fg.RawSketch,
        fg.Plan,
        fg.Zcdp,
        fg.Gdp,
        fg.ApproxDp,
    ]:
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Sub", (final,), {})
    for base in [fg.Structure, fg.Budget]:
        sub = type("Sub", (base,), {"release": lambda self: 0.0})
        with pytest.raises(TypeError, match="cannot create"):
            sub()


def test_attributes_cannot_be_set_or_deleted() -> None:
    structure = make_vector()
    for name in [
        "now",
        "horizon",
        "sealed",
        "privacy",
        "insecure_seed",
        "size",
        "max_norm",
        "release",
        "extra",
        "__dict__",
    ]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(structure, name, 3)
        with pytest.raises((AttributeError, TypeError)):
            delattr(structure, name)
    assert (structure.now, structure.horizon, structure.size) == (1, 8, 20)


def test_a_method_of_one_class_refuses_an_object_of_another() -> None:
    method: Any
    for method, other in [
        (fg.ContinualVector.release, make_counter()),
        (fg.ContinualCounter.release, make_vector()),
        (fg.CountSketch.second_moment, make_vector()),
        (fg.ContinualVector.release, make_sketch()),
        (fg.RawSketch.merge, make_sketch()),
        (fg.RangeCounter.grid, make_sketch()),
        (fg.ContinualCounter.release, make_range()),
        (fg.JoinSize.estimate, make_sketch()),
        (fg.CountSketch.estimate, make_join()),
        (fg.CountSketch.update, make_join().left),
        (fg.Structure.advance, fg.Zcdp(1.0)),
        (fg.Budget.epsilon, make_counter()),
    ]:
        with pytest.raises(TypeError, match="doesn't apply"):
            method(other)


def test_calling_init_again_changes_nothing() -> None:
    structure = counter()
    structure.update(1)
    structure.__init__()
    assert whole(structure.release()) == 1
    assert structure.sealed


def test_the_state_after_any_refused_call_is_the_state_before() -> None:
    cells = vector(4, max_norm=5.0)
    cells.update_row([0, 1], [1.0, 2.0])
    cells.advance(to=3)
    anything: Any = cells
    calls: list[Callable[[], Any]] = [
        lambda: anything.update(4),
        lambda: anything.update([0, 1], [1.0]),
        lambda: anything.update([0, 1], [3.0, 6.0]),
        lambda: anything.update_row([0, 1], [3.0, 5.0]),
        lambda: anything.update([0, 1], [1.0, float("nan")]),
        lambda: anything.update("0"),
        lambda: anything.update(0, 1.0, 2.0),
        lambda: anything.update_rows([[1, 1, 1, 1], [9, 9, 9, 9]]),
        lambda: anything.update_rows([[1, 1, 1]]),
        lambda: anything.release([0, 4]),
        lambda: anything.release(0.0),
        lambda: anything.release([[0], [1, 2]]),
        lambda: anything.release(step=3),
        lambda: anything.advance(to=2),
        lambda: anything.advance(to=9),
        lambda: anything.advance(5),
    ]
    for call in calls:
        assert isinstance(raised_by(call), (ValueError, TypeError))
        assert (cells.now, cells.sealed, cells.dropped) == (3, False, 0)
    assert whole(cells.release()).tolist() == [1, 2, 0, 0]


def test_a_child_that_has_its_parents_number_is_still_a_copy() -> None:
    # In a process namespace of its own the child of process 1 is process 1 again: the number alone tells nothing. Where
    # namespaces are not allowed this is an ordinary fork, and the answer the same.
    script = """
import ctypes, os, fastgame as fg
counter = fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.5))
ctypes.CDLL(None).unshare(0x20000000)
if (child := os.fork()) == 0:
    try:
        counter.update(1)
    except fg.CopyError:
        os._exit(17)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    for prefix in (["unshare", "--pid", "--fork"], []):
        run = subprocess.run([*prefix, sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            assert run.stdout.strip() == "17"
            return
    pytest.fail(f"neither way could be run: {run.stderr}")


def test_the_class_of_a_structure_cannot_be_changed() -> None:
    vector: Any = fg.ContinualVector(3, horizon=8, privacy=PRIVACY)
    with pytest.raises(TypeError, match="layout differs"):
        vector.__class__ = fg.ContinualCounter
    join: Any = make_join()
    for other in [fg.CountSketch, fg.ContinualCounter, fg.RangeCounter]:
        with pytest.raises(TypeError, match="layout differs"):
            join.__class__ = other


#: Without what its types say of words.
UNTYPED: Any = fg
YEAR: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(1.0)}


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: UNTYPED.ContinualCounter(horizn=8, privacy=UNTYPED.Zcdp(1.0)), "horizon"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, Max_weight=2), "max_weight"),
        (lambda: UNTYPED.ContinualVector(4, **YEAR, max_nrom=2.0), "max_norm"),
        (lambda: UNTYPED.CountSketch(**YEAR, widht=16), "width"),
        (lambda: UNTYPED.RangeCounter(**YEAR, axis=[]), "axes"),
        (lambda: UNTYPED.RangeCounter(**YEAR, shape=4, contribution=3), "contributions"),
        (lambda: UNTYPED.RangeCounter.suggest(**YEAR, points=9, shape=4, hashseed=3), "hash_seed"),
        (lambda: UNTYPED.JoinSize.plan(**YEAR, buffer=3), "buffers"),
        (lambda: UNTYPED.RawSketch(width=16, dept=3), "depth"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, mechanism="bllt"), "blt"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, mechanism="Tree"), "tree"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, mechanism="tree_paper"), "tree-paper"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, protect="updates"), "update"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, on_excess="clipp"), "clip"),
        (lambda: UNTYPED.ContinualCounter(**YEAR, invalid="dropped"), "drop"),
        (lambda: UNTYPED.RangeCounter(**YEAR, shape=4, estimator="least squares"), "least_squares"),
        (lambda: UNTYPED.RangeCounter(**YEAR, shape=4, levels="diadic"), "dyadic"),
        (lambda: UNTYPED.open("never.fg", UNTYPED.ContinualCounter, **YEAR, sync="allways"), "always"),
        (
            lambda: UNTYPED.RangeCounter(**YEAR, axes=UNTYPED.axis.Integer(0, 4, name="delay")).count(
                {"dealy": (0, 2)}
            ),
            "delay",
        ),
        (
            lambda: UNTYPED.RangeCounter(**YEAR, axes=UNTYPED.axis.Integer(0, 4, name="delay")).marginal("delays"),
            "delay",
        ),
    ],
)
def test_a_misspelled_word_is_told_the_nearest_one(call: Callable[[], Any], nearest: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf'\(did you mean "{nearest}"\?\)'):
        call()


@pytest.mark.parametrize("word", ["gaussian", "x", "", "\ud800", "t" * 10_000])
def test_a_word_that_is_near_to_none_is_told_none(word: str) -> None:
    for given in ({"mechanism": word}, {word: 1}):
        with pytest.raises((TypeError, ValueError)) as error:
            UNTYPED.ContinualCounter(**YEAR, **given)
        assert "did you mean" not in str(error.value) and len(str(error.value)) < 400

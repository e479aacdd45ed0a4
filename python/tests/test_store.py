"""Durable structures: made, continued, refused; what is stored of them; and files that nobody should open."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import stat
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_format import IMAGE, JOURNAL, PARAMETERS, File, parse, parse_parameters

import fastgame as fg
from fastgame import _store

GOLDEN = Path(__file__).parent / "golden" / "store"
COMMON: dict[str, Any] = {"horizon": 1000, "privacy": fg.Zcdp(rho=0.5)}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file in memory, where that can be: a sync of a disk takes milliseconds."""
    shared = Path("/dev/shm")
    folder = shared / f"fastgame-{os.getpid()}-{tmp_path.name}" if shared.is_dir() else tmp_path
    folder.mkdir(exist_ok=True)
    yield folder / "x.fg"
    shutil.rmtree(folder)


AXES = [
    fg.axis.Regular(10, 0, 0.1, name="a"),
    fg.axis.Variable([0, 1.5, 1e300], underflow=False),
    fg.axis.Integer(-(1 << 60), 1 << 60, overflow=False),
    fg.axis.Datetime("2026-01-01", "2027-01-01", "1mo", tz="Europe/Copenhagen", name="when"),
    fg.axis.StrCategory(["ä", "'", '"'], name="c"),
]

STRUCTURES: dict[str, tuple[type[fg.Structure], dict[str, Any]]] = {
    "counter": (fg.ContinualCounter, {"max_weight": 3}),
    "vector": (fg.ContinualVector, {"size": 7, "max_norm": 0.1, "invalid": "drop"}),
    "sketch": (fg.CountSketch, {"width": 64, "depth": 3}),
    "ranges": (fg.RangeCounter, {"shape": (50, 3), "levels": "dyadic", "width": 64}),
    "axes": (fg.RangeCounter, {"axes": AXES, "width": 32, "estimator": "cover"}),
    "join": (fg.JoinSize, {"width": 64}),
}
MECHANISMS: dict[str, dict[str, Any]] = {
    "tree": {},
    "paper": {"mechanism": "tree-paper", "protect": "update", "contributions": 2},
    "blt": {"mechanism": "blt", "buffers": 2, "privacy": fg.ApproxDp(epsilon=1, delta=1e-6)},
    "laplace": {"privacy": fg.PureDp(epsilon=0.1), "protect": "lifetime"},
    "static": {"horizon": 1, "privacy": fg.Gdp(mu=0.1), "on_excess": "clip"},
}


def use(structure: Any, seed: int) -> None:
    """Some updates."""
    rng = np.random.default_rng(seed)
    match structure:
        case fg.ContinualCounter():
            structure.update(rng.integers(-3, 4, 5))
        case fg.ContinualVector():
            structure.update(rng.integers(0, 7, 2), rng.uniform(0, 0.05, 2))
        case fg.CountSketch():
            structure.update(rng.integers(0, 40, 30))
        case fg.RangeCounter() if structure.axes is None:
            structure.insert(np.stack([rng.integers(0, 50, 9), rng.integers(0, 3, 9)], axis=1))
        case fg.RangeCounter():
            structure.insert([[0.05, 1.0, 7, dt.datetime(2026, 5, 1, tzinfo=dt.timezone.utc), "ä"]])
        case fg.JoinSize():
            structure.left.update(rng.integers(0, 40, 30))
            structure.right.update(rng.integers(0, 40, 30))


def answers(structure: Any) -> list[float]:
    """What is asked of it at the present step."""
    match structure:
        case fg.ContinualCounter():
            return [structure.release()]
        case fg.ContinualVector():
            return [*structure.release([1, 3]), *structure.release()]
        case fg.CountSketch():
            return [*structure.estimate([1, 2, 3]), structure.second_moment()]
        case fg.RangeCounter() if structure.axes is None:
            return [*structure.count([[0, 0], [5, 1]], [[50, 3], [20, 2]])]
        case fg.RangeCounter():
            return [structure.count({"c": "ä"})]
        case _:
            return [structure.estimate()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_goes_on_where_it_stopped(name: str, mechanism: str, path: Path) -> None:
    cls, own = STRUCTURES[name]
    parameters = {**COMMON, **own, **MECHANISMS[mechanism]}
    before: list[float] = []
    for life in range(6):
        with fg.open(path, cls, **parameters) as structure:
            assert type(structure) is cls
            assert structure.path == path.resolve()
            if before:
                assert structure.sealed
                assert answers(structure) == before
            if structure.now < structure.horizon:
                structure.advance()
            if not structure.sealed:
                use(structure, life)
            if life == 3:
                structure.checkpoint()
            before = answers(structure)
            assert fg.inspect(path).generation == structure.generation
    info = fg.inspect(path)
    assert (info.structure, info.version, info.lost) == (cls.__name__, 1, 0)
    with fg.open(path) as structure:
        assert (info.now, info.sealed) == (structure.now, structure.sealed)
        made = cls(
            **{
                **parameters,
                **({} if "hash_seed" not in info.parameters else {"hash_seed": info.parameters["hash_seed"]}),
            }
        )
        assert repr(structure).partition(" at step")[0] == repr(made).partition(" at step")[0]
        assert answers(structure) == before


def test_the_first_life_of_a_seeded_structure_is_that_of_one_in_memory(path: Path) -> None:
    parameters = {**COMMON, "width": 64, "hash_seed": 1, "insecure_seed": 5}
    memory = fg.CountSketch(**parameters)
    with fg.open(path, fg.CountSketch, **parameters) as durable:
        for structure in (memory, durable):
            use(structure, 1)
        assert answers(durable) == answers(memory)
        assert durable.memory <= 2 * memory.memory
    # Then noise is drawn that was not drawn before.
    memory.advance()
    with fg.open(path) as durable:
        durable.advance()
        assert all(ours != theirs for ours, theirs in zip(answers(durable)[:3], answers(memory)[:3], strict=True))


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("horizon", {"horizon": 1001}),
    ("privacy", {"privacy": fg.Zcdp(rho=0.25)}),
    ("privacy", {"privacy": fg.Gdp(mu=1.0)}),
    ("width", {"width": 128}),
    ("depth", {"depth": 3}),
    ("hash_seed", {"hash_seed": 1}),
    ("max_weight", {"max_weight": 2}),
    ("mechanism", {"mechanism": "blt"}),
    ("protect", {"protect": "lifetime"}),
    ("contributions", {"contributions": 2}),
    ("on_excess", {"on_excess": "clip"}),
    ("invalid", {"invalid": "drop"}),
    ("insecure_seed", {"insecure_seed": 1}),
]


@pytest.mark.parametrize(("field", "other"), OTHERS, ids=lambda value: str(value)[:30])
def test_other_parameters_than_the_stored_ones_are_refused_by_name(field: str, other: Any, path: Path) -> None:
    fg.open(path, fg.CountSketch, width=64, **COMMON).close()
    before = path.read_bytes()
    with pytest.raises(fg.IncompatibleError, match=rf"made with {field} = "):
        fg.open(path, fg.CountSketch, **{**COMMON, **other})
    assert path.read_bytes() == before
    # Those that are the same in another spelling are the same.
    fg.open(path, fg.CountSketch, width=np.int32(64), depth=5, hash_seed=None, horizon=1000).close()
    with pytest.raises(fg.IncompatibleError, match="structure = 'CountSketch', and 'JoinSize'"):
        fg.open(path, fg.JoinSize, **COMMON)


def test_axes_are_compared_as_axes(path: Path) -> None:
    axes = [fg.axis.Datetime("2026-01-01", "2026-02-01", "1d", name="day")]
    fg.open(path, fg.RangeCounter, axes=axes, **COMMON).close()
    same = fg.axis.Datetime(dt.date(2026, 1, 1), dt.datetime(2026, 2, 1), dt.timedelta(days=1), name="day")
    fg.open(path, fg.RangeCounter, axes=[same]).close()
    for other in (
        [fg.axis.Datetime("2026-01-01", "2026-02-02", "1d", name="day")],
        [fg.axis.Integer(0, 33)],
        [*axes, fg.axis.Integer(0, 3)],
    ):
        with pytest.raises(fg.IncompatibleError, match="made with axes = "):
            fg.open(path, fg.RangeCounter, axes=other)
    with pytest.raises(fg.IncompatibleError, match="made with shape = None"):
        fg.open(path, fg.RangeCounter, shape=33)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_words_come_back_as_they_were(name: str, mechanism: str) -> None:
    cls, own = STRUCTURES[name]
    keywords = fg._core._keywords(cls.__name__, {**COMMON, **own, **MECHANISMS[mechanism]})
    words = _store._written(cls.__name__, keywords)
    assert _store._read(words) == (cls.__name__, keywords)
    assert json.loads(words)["structure"] == cls.__name__


def test_times_of_every_kind_come_back_as_they_were() -> None:
    day = dt.date(2026, 1, 1)
    zoned = dt.datetime(2026, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    for given in [
        (day, dt.date(2026, 3, 1), "1w", None),
        (np.datetime64("2026-01-01"), np.datetime64("2026-01-03T04:00"), dt.timedelta(microseconds=7200_000_000), None),
        (zoned, zoned + dt.timedelta(days=3), "1h", None),
        (day, dt.date(2026, 3, 1), "1d", dt.timezone.utc),
        (day, dt.date(2026, 3, 1), "1d", dt.timezone(-dt.timedelta(hours=3, minutes=30))),
        (day, dt.date(2026, 3, 1), "1d", zoneinfo.ZoneInfo("Asia/Kolkata")),
    ]:
        start, stop, every, tz = given
        one = fg.axis.Datetime(start, stop, every, tz=tz)
        again = _store._axis_of(json.loads(json.dumps(_store._axis_words(one))))
        assert again == one


def test_an_axis_of_another_class_is_not_stored(path: Path) -> None:
    class Mine(fg.axis.Integer):
        pass

    with pytest.raises(TypeError, match="an axis of the class Mine cannot be stored"):
        fg.open(path, fg.RangeCounter, axes=[Mine(0, 5)], **COMMON)
    assert not path.exists()


def test_what_open_is_given_is_checked(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such store; to make one"):
        fg.open(path)
    wrong: Any = fg.Ticks
    with pytest.raises(TypeError, match=r"structure must be one of ContinualCounter, .*; Ticks was given"):
        fg.open(path, wrong)
    with pytest.raises(TypeError, match="parameters need the structure"):
        fg.open(path, None, horizon=5)  # type: ignore[call-overload]
    word: Any = "never"
    with pytest.raises(ValueError, match="sync must be"):
        fg.open(path, fg.ContinualCounter, sync=word, **COMMON)
    for number in (-1, 1 << 64):
        with pytest.raises(ValueError, match="expect_generation must be from 0"):
            fg.open(path, fg.ContinualCounter, expect_generation=number, **COMMON)
    with pytest.raises(TypeError):
        fg.open(path, fg.ContinualCounter, expect_generation=1.5, **COMMON)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match='no argument "width"'):
        fg.open(path, fg.ContinualCounter, width=5, **COMMON)
    with pytest.raises(fg.StateError, match=r"there is no .*, and a store of generation 1 was expected"):
        fg.open(path, fg.ContinualCounter, expect_generation=1, **COMMON)
    assert not path.exists()


def test_a_closed_structure_may_be_looked_at_and_not_used(path: Path) -> None:
    for structure in (fg.ContinualCounter(**COMMON), fg.open(path, fg.ContinualCounter, **COMMON)):
        with structure as entered:
            assert entered is structure
            structure.update(1)
        structure.close()
        assert (structure.now, structure.sealed, structure.horizon) == (1, False, 1000)
        assert "ContinualCounter" in repr(structure)
        for call in (structure.update, structure.release, structure.advance, structure.sync, structure.checkpoint):
            with pytest.raises(fg.StateError, match="closed"):
                call()
    memory = fg.ContinualCounter(**COMMON)
    assert memory.path is None and memory.generation is None
    for call in (memory.sync, memory.checkpoint):
        with pytest.raises(fg.StateError, match="in memory alone"):
            call()


def test_what_was_dropped_is_counted_on(path: Path) -> None:
    for life in range(1, 4):
        with fg.open(path, fg.ContinualCounter, invalid="drop", **COMMON) as counter:
            counter.update([1, 2, 5])
            assert counter.dropped == 2 * life
    assert "dropped" not in str(fg.inspect(path))


def test_what_is_held_is_there_in_whole_or_not_at_all(path: Path) -> None:
    with fg.open(path, fg.ContinualCounter, **COMMON) as counter:
        counter._hold()
        for _ in range(3):
            counter.update(1)
            counter.release()
            counter.advance()
    with fg.open(path) as counter:
        assert (counter.now, counter.generation) == (1, 0)
        counter._hold()
        for _ in range(3):
            counter.advance()
        counter._commit()
    assert fg.inspect(path)[3:5] == (1, 4)


def test_a_new_file_is_for_its_owner_alone(path: Path) -> None:
    mask = os.umask(0)
    try:
        fg.open(path, fg.ContinualCounter, **COMMON).close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# The format, from its description alone.


def test_the_file_is_as_it_is_described(path: Path) -> None:
    with fg.open(path, fg.ContinualVector, size=3, **COMMON) as vector:
        vector.update(1)
        vector.advance(to=7)
        vector.release([2])
    file = parse(path.read_bytes())
    assert [(frame.kind, frame.generation, frame.step, frame.sealed, frame.marked) for frame in file.frames] == [
        (PARAMETERS, 0, 1, False, False),
        (IMAGE, 0, 1, False, True),
        (JOURNAL, 1, 1, False, True),
        (JOURNAL, 2, 7, False, True),
        (JOURNAL, 3, 7, True, True),
    ]
    parameters = parse_parameters(file.frames[0].body)
    assert json.loads(parameters.words)["parameters"]["size"] == 3
    assert ("horizon", "1000") in parameters.values and parameters.to_bytes() == file.frames[0].body
    assert parameters.noise[0] == fg.open(path).lattice_step
    dropped = b"\0" * 8
    # One update of a whole unit, 2^20 steps of the lattice of values: cell 1, zigzag.
    assert file.frames[2].body == dropped + b"\x03\x01\x02" + b"\x80\x80\x80\x01"
    assert file.frames[3].body == dropped + b"\x01\x07"
    # Cell 2 alone: the root and the leaf. Then the seal.
    assert file.frames[4].body[:11] == dropped + b"\x04\x01\x04" and file.frames[4].body[27:] == b"\x02"


def changed(path: Path, change: Callable[[File], None]) -> None:
    """Writes the file anew with right checksums."""
    file = parse(path.read_bytes())
    change(file)
    path.write_bytes(file.to_bytes())


def with_words(change: Callable[[dict[str, Any]], None]) -> Callable[[File], None]:
    def apply(file: File) -> None:
        parameters = parse_parameters(file.frames[0].body)
        words = json.loads(parameters.words)
        change(words)
        parameters.words = json.dumps(words)
        file.frames[0].body = parameters.to_bytes()

    return apply


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 1 << 40),
        ("depth", 1 << 40),
        ("horizon", 1 << 63),
        ("privacy", {"Zcdp": {"rho": -1}}),
        ("privacy", {"os": {}}),
        ("privacy", None),
        ("nonsense", 1),
        ("max_weight", "1"),
        ("max_weight", [[]]),
    ],
)
def test_words_that_no_structure_has_are_refused(name: str, value: Any, path: Path) -> None:
    fg.open(path, fg.CountSketch, width=64, **COMMON).close()
    changed(path, with_words(lambda words: words["parameters"].update({name: value})))
    with pytest.raises((fg.FastgameError, ValueError, TypeError)):
        fg.open(path)


@pytest.mark.parametrize("size", [1 << 40, 1 << 60, (1 << 64) - 1])
def test_a_header_of_a_huge_structure_is_refused_without_allocating(size: int, path: Path) -> None:
    fg.open(path, fg.RangeCounter, shape=(5, 5), **COMMON).close()
    for shape in ([size, size], [size] * 6):
        changed(path, with_words(lambda words, shape=shape: words["parameters"].update(shape=shape)))  # type: ignore[misc]
        with pytest.raises((fg.FastgameError, ValueError, MemoryError)):
            fg.open(path)
    path.unlink()
    fg.open(path, fg.ContinualVector, size=5, **COMMON).close()
    changed(path, with_words(lambda words: words["parameters"].update(size=size)))
    with pytest.raises((fg.FastgameError, ValueError, MemoryError, OverflowError)):
        fg.open(path)


def test_frames_in_the_wrong_place_are_refused(path: Path) -> None:
    with fg.open(path, fg.ContinualCounter, **COMMON) as counter:
        counter.update(1)
        counter.release()
    whole = path.read_bytes()

    def refused(change: Callable[[File], Any]) -> None:
        path.write_bytes(whole)
        changed(path, change)
        with pytest.raises(fg.StateError, match="damaged"):
            fg.open(path)

    refused(lambda file: file.frames.pop(0))
    refused(lambda file: file.frames.pop(2))
    refused(lambda file: file.frames.insert(1, file.frames[0]))
    refused(lambda file: file.frames.append(file.frames[1]))
    refused(lambda file: setattr(file.frames[3], "generation", 7))
    refused(lambda file: setattr(file.frames[3], "step", 2))
    refused(lambda file: setattr(file.frames[3], "sealed", False))
    refused(lambda file: setattr(file.frames[2], "body", b""))
    # An update behind a seal, a read of nothing new, noise that is no number.
    records = file_records(whole)
    refused(lambda file: setattr(file.frames[2], "body", b"\0" * 8 + b"\x02" + records[2]))
    refused(lambda file: setattr(file.frames[3], "body", b"\0" * 8 + records[3] + records[3]))
    refused(lambda file: setattr(file.frames[3], "body", b"\0" * 8 + records[3][:2] + b"\xff" * (len(records[3]) - 2)))


def file_records(data: bytes) -> list[bytes]:
    return [frame.body[8:] for frame in parse(data).frames]


def test_other_versions_and_other_files_are_told_apart(path: Path) -> None:
    fg.open(path, fg.ContinualCounter, **COMMON).close()
    file = parse(path.read_bytes())
    file.version = 2
    path.write_bytes(file.to_bytes())
    with pytest.raises(fg.StateError, match="a store of version 2, and this library knows version 1"):
        fg.open(path)
    for content in (b"", b"fastgam", b"SQLite format 3\0" * 10, b"PAR1"):
        path.write_bytes(content)
        with pytest.raises(fg.StateError, match="is not a store of fastgame"):
            fg.open(path)
        with pytest.raises(fg.StateError, match="is not a store of fastgame"):
            fg.inspect(path)
        assert path.read_bytes() == content


# Files of every version, to be read for ever.


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("v*/*.fg")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_every_version_are_read_for_ever(golden: Path, path: Path) -> None:
    shutil.copy(golden, path)
    expected = json.loads(golden.with_suffix(".json").read_text())
    info = fg.inspect(path)
    assert [info.structure, info.version, info.generation, info.now] == expected["info"]
    with fg.open(path) as structure:
        assert repr(structure) == expected["repr"]
        assert answers(structure) == expected["answers"]
        assert structure.generation == expected["info"][2]
        if structure.now < structure.horizon:
            structure.advance()
            use(structure, 9)
            fresh = answers(structure)
    if info.now < structure.horizon:
        with fg.open(path) as structure:
            assert answers(structure) == fresh


def test_there_are_files_of_this_version() -> None:
    names = {path.stem for path in (GOLDEN / "v1").glob("*.fg")}
    assert names == {f"{name}-{mechanism}" for name in STRUCTURES for mechanism in MECHANISMS}

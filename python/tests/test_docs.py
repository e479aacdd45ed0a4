"""The documents: each Python example runs, and everything public has a docstring."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fastgame as fg

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

# ```python or ```sh to ```, at any indentation, unless <!-- no-test --> stands before it.
FENCE = re.compile(
    r"(?P<skip><!--\s*no-test\s*-->\s*\n\s*)?^(?P<indent>[ \t]*)```(?P<language>python|sh)[^\n]*\n"
    r"(?P<code>.*?)^[ \t]*```",
    re.DOTALL | re.MULTILINE,
)


def blocks(text: str) -> list[tuple[str, str]]:
    """The blocks of a document to be run: the language, and the code moved down to the line where it stands."""
    found = []
    for match in FENCE.finditer(text):
        if not match["skip"]:
            code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
            found.append((match["language"], "\n" * text.count("\n", 0, match.start("code")) + code))
    return found


def run_shell(code: str) -> None:
    """Runs commands, with `fastgame` among them, in the present folder; stops at the first that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, env={**os.environ, "PATH": path})


def test_blocks_are_found_with_their_lines_and_may_be_left_out() -> None:
    text = "# a\n```python\nx = 1\n```\n<!-- no-test -->\n```python\n1 / 0\n```\n- b\n\n"
    text += "  ```python\n  y = 2\n  if y:\n    pass\n  ```\n```sh\nz\n```\n```text\nt\n```\n"
    found = [("python", "\n\nx = 1\n"), ("python", "\n" * 11 + "y = 2\nif y:\n  pass\n"), ("sh", "\n" * 16 + "z\n")]
    assert blocks(text) == found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_document_run_in_order(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for language, block in blocks(path.read_text(encoding="utf-8")):
        if language == "sh":
            run_shell(block)
        elif block.lstrip().startswith(">>>"):
            parsed = doctest.DocTestParser().get_doctest(block, namespace, path.name, str(path), 0)
            assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed, clear_globs=False).failed == 0
        else:
            exec(compile(block, str(path), "exec"), namespace)


def test_the_example_of_the_package_docstring_runs() -> None:
    assert doctest.testmod(fg, raise_on_error=True).attempted >= 5


def public_things() -> dict[str, Any]:
    """All that a user can name: the module, its classes and functions, their methods and properties."""
    things: dict[str, Any] = {"fastgame": fg}
    named = {name: getattr(fg, name) for name in fg.__all__}
    named |= {f"axis.{name}": getattr(fg.axis, name) for name in fg.axis.__all__}
    for name, thing in named.items():
        if isinstance(thing, str):
            continue
        things[name] = thing
        if isinstance(thing, type):
            members = inspect.getmembers_static(thing) if hasattr(inspect, "getmembers_static") else vars(thing).items()
            for member, value in members:
                ours = any(member in vars(base) for base in thing.__mro__ if base.__module__.startswith("fastgame"))
                # Fields of a dataclass stand in the docstring of the class.
                field = member in getattr(thing, "__dataclass_fields__", {})
                if ours and not field and not member.startswith("_"):
                    things[f"{name}.{member}"] = value
    return things


THINGS = public_things()


@pytest.mark.parametrize("name", THINGS)
def test_everything_public_has_a_docstring(name: str) -> None:
    thing = THINGS[name]
    documentation = getattr(thing, "__doc__", None) or getattr(getattr(thing, "__func__", None), "__doc__", None)
    assert documentation and documentation.strip(), f"{name} has no docstring"
    assert len(documentation.split()) >= 3


def test_the_list_of_public_things_is_no_empty_shell() -> None:
    for name in [
        "ContinualVector.update_row",
        "ContinualVector.update_rows",
        "CountSketch.top",
        "RawSketch.merge",
        "Interval.lower",
        "ContinualCounter.noise_std",
        "Zcdp.epsilon",
        "Plan.error",
        "FrequencyProfile.zipf",
        "Structure.now",
        "RangeCounter.count",
        "Plan.box",
        "JoinSize.estimate",
        "JoinSide.update",
        "JoinProfile.uniform",
        "JoinEstimate.std_of_rows",
        "JoinTerms.balanced_width",
        "Plan.join_terms",
        "replay_join",
        "axis.Regular.index",
        "axis.StrCategory",
    ]:
        assert name in THINGS


def test_a_docstring_names_every_parameter_of_the_constructors() -> None:
    for thing in [
        fg.ContinualCounter,
        fg.ContinualVector,
        fg.CountSketch,
        fg.RangeCounter,
        fg.JoinSize,
        fg.RawSketch,
        fg.FrequencyProfile,
        fg.JoinProfile,
        fg.Zcdp,
        fg.Gdp,
        fg.ApproxDp,
        fg.Ticks,
        fg.Feed,
        fg.RowCounts,
        fg.replay,
        fg.replay_join,
        *(getattr(fg.axis, name) for name in fg.axis.__all__),
    ]:
        for parameter in inspect.signature(thing).parameters:
            # Alone with its type, or in a list of those that are as elsewhere.
            shown = rf"^([a-z_]+, )*{parameter}(, [a-z_]+)*( : |$)"
            assert re.search(shown, inspect.getdoc(thing) or "", re.MULTILINE), (thing, parameter)


def test_signatures_show_the_defaults_that_hold() -> None:
    built: Any
    plan: Any
    own: Any
    for plan, own in [
        (fg.ContinualCounter.plan, {}),
        (fg.ContinualVector.plan, {"size": 3}),
        (fg.CountSketch.plan, {"width": 16}),
        (fg.JoinSize.plan, {}),
        (fg.RangeCounter.plan, {"axes": [fg.axis.Integer(0, 3)]}),
        (fg.JoinSize.plan, {}),
    ]:
        given: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(1.0), **own}
        built = plan(**given).build()
        for name, parameter in inspect.signature(plan).parameters.items():
            if name == "hash_seed":
                assert isinstance(built.hash_seed, int)  # drawn at random
            elif name in {"shape", "axes"}:
                assert parameter.default is None  # one of the two is given
            elif parameter.default is not inspect.Parameter.empty:
                assert getattr(built, name) == parameter.default
            assert inspect.signature(type(built)).parameters[name] == parameter


def test_all_is_what_the_module_has() -> None:
    public = {name for name in vars(fg) if not name.startswith("_")}
    modules = {name for name in public if inspect.ismodule(getattr(fg, name))} - {"axis"}
    assert set(fg.__all__) - {"__version__"} == public - modules
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", fg.__version__)

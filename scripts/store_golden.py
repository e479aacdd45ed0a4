"""Writes the files of durable structures that every later version must read: `python scripts/store_golden.py v1`.

Once for each version of the format, by the library that first has it; a folder that is there is not written again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fastgame as fg

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from test_store import COMMON, MECHANISMS, STRUCTURES, answers, use  # noqa: E402


def main() -> None:
    """Writes a file for each structure and mechanism, and beside it what it must give."""
    folder = ROOT / "python" / "tests" / "golden" / "store" / sys.argv[1]
    folder.mkdir(parents=True)
    for name, (cls, own) in STRUCTURES.items():
        for number, (mechanism, more) in enumerate(MECHANISMS.items()):
            path = folder / f"{name}-{mechanism}.fg"
            parameters = {**COMMON, **own, **more}
            with fg.open(path, cls, **parameters) as structure:
                use(structure, number)
                answers(structure)
                if structure.horizon > 1:
                    structure.advance(to=40)
                    use(structure, number + 1)
                    answers(structure)
                    structure.checkpoint()
                    structure.advance(to=41)
                    use(structure, number + 2)
                expected = {"answers": answers(structure), "repr": repr(structure)}
            info = fg.inspect(path)
            expected["info"] = [info.structure, info.version, info.generation, info.now]
            path.with_suffix(".json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""One row decides over itself alone."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest
import row_doors
from row_doors import DOORS, check, odds_of, settings

from fastgame import _files

@pytest.mark.parametrize("door", DOORS)
def test_explore(door, tmp_path, monkeypatch):
    chosen = random.Random(1)
    found = Counter(); example = {}
    tried = 0; begun = time.time(); groups = 0; refused = Counter()
    for setting in settings(door, chosen):
        groups += 1
        if time.time() - begun > 20: break
        for name, value in row_doors.blocks_of(setting).items():
            if hasattr(_files, name):
                monkeypatch.setattr(_files, name, value)
        odds = odds_of(setting)
        for wrong, value in check(setting, chosen.sample(odds, min(len(odds), 8)), chosen, tmp_path):
            if not wrong:
                tried += 1
                continue
            k = (setting.sink, setting.role, setting.kind, wrong.split(";")[0][:28], type(value).__name__)
            found[k] += 1
            example.setdefault(k, (value, wrong, setting))
    print(f"== {door}: {groups} groups, {tried} tried, {time.time()-begun:.1f}s, wrong {sum(found.values())}")
    for k, n in found.most_common(40):
        print(n, k, repr(example[k][0])[:60], example[k][1][:400])

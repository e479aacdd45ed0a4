"""``python -m fastgame``: the command line."""

from fastgame._cli import process

process()

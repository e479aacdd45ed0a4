"""``python -m fastgame``: the command line."""

import sys

from fastgame._cli import main

sys.exit(main())

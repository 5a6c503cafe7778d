"""The constants that `lemmata predict shallow-vit` uses, from the stored results of a figure: `python -m
benchmarks.shallow_vit_constants runs/shallow-vit/constants/quick`."""

import json
import sys

from lemmata.desk import stored_order
from lemmata.studies.shallow_vit.figures.settings import constants

if __name__ == "__main__":
    print(json.dumps(constants(stored_order(sys.argv[1]).results()), indent=1))

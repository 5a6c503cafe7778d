"""The law of labels that `lemmata predict gcn-sampling` uses, from the stored results of figure 5.1. One command, after
`lemmata run gcn-sampling/fig5-1`:

    python -m benchmarks.gcn_sampling_constants runs/gcn-sampling/fig5-1/quick > FILE

FILE is `constants.json` in the study's `theory`. Further folders are settings that the law was not fitted on (the same figure
with other fields); how far off the law is there goes to the standard error stream.
"""

import json
import sys

from lemmata.desk import stored_order
from lemmata.studies.gcn_sampling.figures.errors import held_out, law_of_labels, typical_need

if __name__ == "__main__":
    results, *others = (stored_order(folder).results() for folder in sys.argv[1:])
    law = law_of_labels(results)
    print(json.dumps({**law, **held_out(results)}, indent=1))
    for folder, other in zip(sys.argv[2:], others, strict=True):
        norms, found = typical_need(other, law["error"])
        for norm, need in zip(norms, found, strict=True):
            said = law["constant"] * norm ** law["power"]
            print(
                f"{folder}: norm {norm:.3f}, {need:.0f} labels needed, {said:.0f} predicted", file=sys.stderr
            )

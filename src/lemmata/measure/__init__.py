"""From records to numbers with intervals.

Measures take labelled arrays (one value a run, axes by name) and return an `Estimate`, or a small law made of
estimates. What they cannot measure they say so: `Estimate.absent(reason)`, never an exception, never a number from
nothing.

| module      | measures |
|-------------|----------|
| `simple`    | `fraction` of runs, `mean` over seeds |
| `threshold` | `critical_size`: where success passes 50 % along one axis |
| `boundary`  | `boundary`: the critical line of a two-axis sweep and its law |
| `exponent`  | `exponent`, `power_law`: log-log slopes, with censored runs and a test for a bend |
| `levelset`  | `level_set`, `crossings`: where a continuous quantity passes a level |
| `times`     | `settling_time`, `growth`, `grows`: when a curve crosses and stays; linear, logarithmic, exponential |
| `trend`     | `difference`, `ratio`, `gap`, `trend`, `ordering`: comparisons within seeds |
| `orderwise` | `fit_then_test`: a law with an unknown constant |
| `columns`   | `below`, `above`, `capped`: success and censoring of runs, missing runs kept missing |
| `compare`   | `decide`, `more_seeds`, `together`: from estimates to verdicts |
"""

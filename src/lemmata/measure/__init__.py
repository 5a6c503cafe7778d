"""From records to numbers with intervals, and from those to verdicts.

Measures take labelled arrays (one value a run, axes by name) and return an `Estimate`, or a small law made of
estimates. What they cannot measure they say so: `Estimate.absent(reason)`, or, inside a study's measure, `needs(condition,
sentence)`, which the judge turns into `inconclusive` with that sentence. Anything else that goes wrong is a bug and shows.

| module      | what it has |
|-------------|----------|
| `estimate`  | `Estimate(value, low, high, count, level, note, freedom, seen, parts, drift)` with `.map(f)`, `.noted(text)`, `.minus(other)` and `.over(other)` (of independent estimates), `Estimate.certain(value, count, note)` (no interval), `Estimate.absent(reason)`; `needs(condition, sentence)`, `answering(absent)`, `Unmeasurable` |
| `simple`    | `fraction(flags)` of runs (also the share of stuck ones: `fraction(above(loss, 0.3))`), `mean(values)`, `median(values)` over seeds, `bootstrap(statistic, values)`: any number of all runs, its interval by drawing seeds again, `jackknife(measure, seed)` |
| `worst`     | `worst(values, tolerance) -> Worst(measured, violations)`: the worst run and the share of runs that violate; a study's measure of a for-all claim returns one number a run and leaves this to the judge |
| `threshold` | `critical_size(success, size)`: where success passes 50 % along one axis; `critical_sizes(success, size, over) -> Dataset(value, low, high, inside)` along another |
| `boundary`  | `boundary(success, threshold, over, exponent=None, at=1.0, paired=False) -> PowerLaw(exponent, constant, bend)`: the critical line of a two-axis sweep and its law |
| `exponent`  | `exponent(values, over, censored=None, paired=False)`, `power_law(...)`: log-log slopes, with censored runs, local exponents of the lower and upper part of the grid, a test for a bend |
| `line`      | `curvature(values, over)`: the relative change of slope along an axis, 0 for a straight line |
| `levelset`  | `level_set(values, level, threshold, over)`, `crossings(values, level, along)`: where a continuous quantity passes a level |
| `times`     | of curves, one number a run: `at_step(curves, step)`, `first_value(curves)`, `last_value(curves)`, `settling_time(curves, level, side)`, `largest_fall(curves, relative=False)`, `run_slopes(curves, where=None, since=0.0, fewest=3)` (against the logarithm of the steps); `time_exponent(curves, where=None, since=0.0)`: the exponent of curves in time, an `Estimate` with its range of steps; `growth(times, values).best`, `grows(curves, "linear")` |
| `trend`     | within seeds: `difference`, `ratio`, `gap`, `trend(values, over)`; `arms(values, over)`: the arms along an axis in order; `ordering(arms, measure=mean)`: the smallest step from arm to arm, `lead(one, others, measure=mean)`: how far one exceeds the nearest of the others, `smallest(arms, measure=mean)` and `largest(arms, measure=mean)`: the extreme of several arms, its interval counting that it was picked; `rises(values, along)`, `falls(values, along)`: the smallest step along an axis (`measure` is `mean`, `median`, `fraction` or any `f(arm, level=...)`) |
| `orderwise` | `fit_then_test(values, law, over)`: a law with an unknown constant |
| `columns`   | success and censoring of runs, missing runs kept missing: `below(values, level)`, `above(values, level)`, `flagged(flags, results)` (1, 0, NaN where not run), `capped(results)`, `converged(results)`, `diverged(results)`; `chosen(results, samples=64)`: grid points by label, or the sentence that one was not run |
| `compare`   | light: `Condition`, `ConditionCount`, `Verdict`, `decide`, `more_seeds`, `together` |
| `judge`     | `judge(claim, results, inside=False) -> Verdict` |
"""  # noqa: E501

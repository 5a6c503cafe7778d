"""Drawings of this study's results."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm

from lemmata.draw.curves import BAND, DOTS, MEAN, law, line, lines, one_run, reference, slope
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED, colours
from lemmata.draw.phase import Line, measured_line, phase_diagram
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.measure.levelset import level_set
from lemmata.results import over_cells, settings
from lemmata.status import DIVERGED
from lemmata.studies.benign_overfitting import theory

CUT = 0.2
"""The paper's cut between small and large test loss."""

SNR = r"SNR $= |\mu|/(\sigma_p\sqrt{d})$"
CONTROL = r"$N\,\mathrm{SNR}^2$"
RELATIVE = r"$N\,\mathrm{SNR}^2 / (2 C_p^2)$"
STAGES = {"signal_leads": (":", "T1"), "slope_leaves": ("--", "T2"), "steps": ("-", "T3")}
"""The ends of the stages: the signal leads 3M times, a loss derivative leaves [0.45, 0.55], the loss is reached."""


@picture
def phase(results: xr.Dataset) -> Drawn:
    """Figure 1: (a) test loss over SNR and N, (b) the same cut at 0.2, with predicted and measured boundaries; (c) as (a)
    on logarithmic axes, where boundaries are straight."""
    fields = settings(results)
    printed, critical = theory.PAPER_CONTROL, theory.critical_control(fields["data.noise_ratio"])
    figure, (left, right, straight) = canvas(3)
    results = results.swap_dims(signal_norm="snr")
    loss, mean = results.test_loss, results.test_loss.mean("seed")
    diverged = (results.status == DIVERGED).any("seed")
    boundaries = [
        Line(f"paper: {CONTROL} = {printed:.0f}", theory.boundary(printed), RED, "--"),
        Line(f"mean field: {CONTROL} $= 2C_p^2$ = {critical:.0f}", theory.boundary(critical), BLACK, ":"),
        Line("mean field with attention: $2C_p^2 c^*$", with_attention(results, critical), GREEN, "-."),
        *measured_line(loss, lambda v, x, y: level_set(v, CUT, x, y), "snr", "samples", "SNR* ∝ $N$"),
    ]
    above = (mean > CUT).astype(float).where(mean.notnull())
    mesh = phase_diagram(left, mean, "snr", "samples", boundaries, diverged=diverged)
    figure.colorbar(mesh, ax=left, label="test loss")
    parted = {"norm": BoundaryNorm([0, 0.5, 1], 256), "cmap": "cividis"}
    mesh = phase_diagram(right, above, "snr", "samples", boundaries, diverged=diverged, **parted)
    figure.colorbar(mesh, ax=right, ticks=[0.25, 0.75]).set_ticklabels([f"≤ {CUT}", f"> {CUT}"])
    panel(left, SNR, "samples N", "(a) test loss", keyed=False)
    panel(right, SNR, "", f"(b) cut at {CUT}", keyed=False)
    phase_diagram(straight, mean, "snr", "samples", boundaries, True, True, diverged=diverged)
    panel(straight, SNR, "", "(c) as (a), logarithmic axes", keyed=False)
    shared_key(figure, left)
    return figure, f"Test loss after training to loss {fields['descent.target_loss']:g}, mean over seeds."


@picture
def dynamics(results: xr.Dataset) -> Drawn:
    """Figures 3 and 4: values, logits and attention over the iterations."""
    figure, axes = canvas(4, width=3.6, height=3.4)
    line(axes[0], results.signal_value_curve, "step", BLUE, r"$y\,\mu^\top W_V w_O$")
    line(axes[0], results.strong_value_curve, "step", RED, r"$y\,\xi_2^\top W_V w_O$")
    for ax, curve in ((axes[1], results.logits_curve), (axes[2], results.attention_curve)):
        for query, style, name in (("signal", "-", r"$\mu$"), ("strong", "--", r"$\xi_2$")):
            for key, colour, to in (("signal", BLUE, r"$\mu$"), ("strong", RED, r"$\xi_2$")):
                line(ax, curve.sel(query=query, key=key), "step", colour, rf"{name} $\to$ {to}", style)
    for name, (style, label) in STAGES.items():
        at = results[name].where(results[name] > 0)
        if bool(at.notnull().any()):
            for ax in axes:
                reference(ax, x=float(at.median()), label=label, style=style)
    line(axes[3], results.train_loss_curve, "step", BLACK, "training loss")
    end = float(results.test_loss.median())
    reference(axes[3], y=end, label=f"test loss at the end: {end:.2f}", colour=ORANGE, style="-")
    panel(axes[0], "iteration", "value, signed by label", "values", "x")
    panel(axes[1], "iteration", r"query $\cdot$ key", "attention logits", "x")
    panel(axes[2], "iteration", "attention weight", "attention", "x", ylim=(-0.03, 1.03))
    panel(axes[3], "iteration", "logistic loss", "loss", "xy")
    f = settings(results)
    said = f"{BAND} T1 (signal leads 3M times), T2 (loss derivative leaves 1/2), T3 (end): medians, where they happened."
    return figure, rf"N = {f['data.samples']}, $|\mu|$ = {f['data.signal_norm']:g}. {said}"


@picture
def times(results: xr.Dataset) -> Drawn:
    """Steps to each loss level, against the axis and against the level, with the slopes of the theorem."""
    (name,) = [d for d in results.steps.dims if d != "seed"]
    label, power = {"signal_norm": (r"signal norm $|\mu|$", -2), "samples": ("samples N", 1)}[str(name)]
    figure, (left, right) = canvas(2)
    reached = results.loss_steps.where(results.loss_steps > 0)
    drawn = lines(left, reached, str(name), "loss_level", "ε = {:g}", style="o-")
    slope(left, drawn[-1], power, colour=GREY)
    drawn = lines(right, reached, "loss_level", str(name), "{:g}", style="o-")
    slope(right, drawn[0], -1, colour=GREY)
    panel(left, label, "steps until training loss ≤ ε", "time against size", "xy", ticks=results[name])
    panel(right, "target loss ε", "", "time against target loss", "xy", key_title=label)
    return figure, f"Steps to reach a training loss. {DOTS}"


@picture
def winner(results: xr.Dataset) -> Drawn:
    """How often the signal wins, and the test loss, over N SNR^2 in units of 2 C_p^2."""
    f = settings(results)
    critical = theory.critical_control(f["data.noise_ratio"])
    figure, panels = canvas(2)
    results = results.assign_coords(relative=results.control / critical)
    for axes, values in zip(panels, (results.signal_wins, results.test_loss), strict=True):
        lines(axes, values, "relative", "samples", "N = {:g}", style="o-", centre="mean")
        reference(axes, x=1.0, label=r"mean field: $2C_p^2$", colour=BLACK)
    mark_critical(panels[0], results, "samples")
    floor = theory.HARMFUL_LOSS_FLOOR_PROOF
    reference(panels[1], y=floor, label="floor of Lemma E.6", colour=RED, style="--")
    panel(panels[0], RELATIVE, "share of samples that the signal wins", "winner", "x")
    panel(panels[1], RELATIVE, "test loss", "generalisation", "x")
    sizes = f"$d_h$ = {f['network.key_dim']:.0e}, $d$ = {f['data.dim']:.0e}"
    return figure, f"Reduced variables drawn in law at {sizes}. {MEAN}"


@picture
def stages(results: xr.Dataset) -> Drawn:
    """Values and signal attention over accumulated step size, in units of eta |mu|^2 |w_O|^2 t, with the ends of the
    stages of one run."""
    figure, axes = canvas(results.sizes["control"], width=4.2, squeeze=False)
    noise = settings(results)["data.weak_noise"] ** 2 * settings(results)["data.dim"]
    for ax, control in zip(axes[0], results.control.values, strict=True):
        one = one_run(results.sel(control=control).isel(samples=-1))
        time = one.time_curve * float(control) / float(one.samples) * noise
        known = np.isfinite(time.values)
        at, step = time.values[known], np.asarray(one.time_curve.step, float)[known]
        for curve, colour, label in (
            (one.signal_value_curve, BLUE, "value of the signal"),
            (abs(one.strong_value_curve), RED, "|value of the strong noise|"),
            (one.attention_curve.sel(query="signal", key="signal"), GREEN, "attention on the signal"),
        ):
            ax.plot(at, curve.values[known], color=colour, label=label)
        for name, (style, label) in STAGES.items():
            if len(at) and float(one[name]) > 0:
                reference(ax, x=float(np.interp(float(one[name]), step, at)), label=label, style=style)
        title, ylim = f"{CONTROL} = {control:.3g}", (1e-8, 100)
        panel(ax, r"$\eta |\mu|^2 |w_O|^2\, t$", "value, attention", title, "xy", ylim=ylim)
    said = "T1: the signal leads 3M times, T2: the loss derivative decays, T3: the end."
    return figure, f"One run each, N = {int(results.samples[-1])}. {said}"


@picture
def leak(results: xr.Dataset) -> Drawn:
    """Attention off the signal at the end, against the key dimension."""
    figure, axes = canvas(width=5.2)
    off = 1 - results.attention.sel(key="signal")
    drawn = lines(axes, off, "key_dim", "query", "{} query", style="o-")
    slope(axes, drawn[0], -0.5, r"slope $-1/2$ (Eqs 64, 65)", colour=GREY)
    panel(axes, r"key dimension $d_h$", "attention off the signal at the end", log="xy")
    return figure, f"Benign regime, reduced variables drawn in law. {DOTS}"


@picture
def noise_ratio(results: xr.Dataset) -> Drawn:
    """Test loss over C_p and N SNR^2, with the mean-field boundary 2 C_p^2."""
    figure, axes = canvas(width=5.6, height=4.0)
    boundary = Line(r"mean field: $2C_p^2$", np.ones_like, BLACK, ":")
    diverged = (results.status == DIVERGED).any("seed")
    mean = results.test_loss.mean("seed")
    mesh = phase_diagram(
        axes, mean, "relative_control", "noise_ratio", [boundary], True, True, diverged=diverged
    )
    figure.colorbar(mesh, ax=axes, label="test loss")
    panel(axes, RELATIVE, r"strong over weak noise $C_p$")
    return figure, f"N = {settings(results)['data.samples']}; mean over seeds."


@picture
def no_strong_token(results: xr.Dataset) -> Drawn:
    """Test loss and attention without a strong noise token."""
    figure, (left, right) = canvas(2)
    lines(left, results.test_loss, "control", "samples", "N = {:g}", style="o-")
    reference(left, x=2.0, label=r"$2C_p^2 = 2$", colour=BLACK)
    attention = results.attention.sel(query="signal")
    lines(right, attention.sel(key="signal"), "control", "samples", "on the signal, N = {:g}", style="o-")
    lines(right, results.noise_share, "control", "samples", "most on one noise token, N = {:g}", style="s--")
    reference(right, y=1 / settings(results)["data.tokens"], label="uniform 1/M", style="--")
    panel(left, CONTROL, "test loss", "generalisation", "x")
    panel(right, CONTROL, "attention of the signal query", "attention", "x", ylim=(0, 1.03))
    return figure, f"$C_p = 1$: no noise token is special. {DOTS}"


@picture
def agreement(results: xr.Dataset) -> Drawn:
    """The four simulators' losses on the same draw, and how far each is from the weights' own."""
    figure, (left, right) = canvas(2)
    loss = results.train_loss_curve
    direct = loss.sel(simulator="direct", drop=True)
    looks = {
        "direct": (GREY, "-", 4.0),
        "row": (BLUE, "-", 2.2),
        "gram": (ORANGE, "--", 1.4),
        "leading-order": (RED, ":", 1.6),
    }
    for name, (colour, style, width) in looks.items():
        one = loss.sel(simulator=name)
        line(left, one.isel(seed=0, orthogonal_noise=0), "step", colour, name, style, linewidth=width)
        if name != "direct":
            worst = np.maximum(abs(one / direct - 1).max(("seed", "orthogonal_noise")), 1e-17)
            law(right, worst.step, worst, name, colour, style)
    reference(right, y=1e-9, label="1e-9", colour=BLACK, style="-")
    panel(left, "iteration", "training loss", "one draw, four simulators", "xy")
    panel(right, "iteration", "relative distance from direct", "worst over all draws", "xy")
    return figure, "The exact forms agree to rounding; the leading order does not."


def with_attention(results: xr.Dataset, critical: float) -> Callable[[np.ndarray], np.ndarray]:
    """SNR over N where the mean field with attention has the flip, from the samples of the grid."""
    flips = over_cells(results, lambda trial: theory.critical_ratio_of(theory.setting(trial))).isel(snr=0)
    known = np.asarray(flips.samples, float)
    return lambda n: np.sqrt(critical * np.interp(n, known, flips.values) / np.asarray(n, float))


def mark_critical(axes: Axes, results: xr.Dataset, by: str) -> None:
    """Where the mean field with attention has the flip, in units of 2 C_p^2, for every arm along `by`."""
    names = results[by].values.tolist()
    flips = over_cells(results, lambda trial: theory.critical_ratio_of(theory.setting(trial))).median(
        "control"
    )
    for name, colour in zip(names, colours(names), strict=True):
        reference(axes, x=float(flips.sel({by: name})), colour=colour, style="--")


@picture
def theorem(results: xr.Dataset) -> Drawn:
    """Test loss and time against the target loss, inside Condition 4.1."""
    figure, (left, right) = canvas(2)
    results = results.isel(fraction=0) if "fraction" in results.dims else results
    said = {"over": "target_loss", "by": "control", "label": lambda c: f"{CONTROL} = {c:g}", "style": "o-"}
    drawn, times = lines(left, results.test_loss, **said), lines(right, results.time, **said)
    if float(results.test_loss.median()) < CUT:
        power = theory.fresh_loss_exponent(settings(results)["data.tokens"])
        slope(left, drawn[0], power, f"slope {power:g} (mean field)", colour=GREY)
    else:
        reference(left, y=theory.HARMFUL_LOSS_FLOOR_PROOF, label="floor of Lemma E.6", colour=RED, style="--")
    slope(right, times[0], -1, colour=GREY)
    panel(left, "target loss ε", "test loss", "generalisation", "xy")
    panel(right, "target loss ε", r"$\sum_t \eta_t$ until training loss ≤ ε", "time", "xy")
    return figure, f"Condition 4.1 met with constants 1, steps a fixed fraction of the time gone by. {DOTS}"


@picture
def feedback(results: xr.Dataset) -> Drawn:
    """Who wins over N SNR^2, for several scales of the initial queries and keys."""
    figure, axes = canvas(width=5.6)
    critical = theory.critical_control(settings(results)["data.noise_ratio"])
    results = results.assign_coords(relative=results.control / critical)
    lines(axes, results.signal_wins, "relative", "start_scale", "start × {:g}", style="o-", centre="mean")
    mark_critical(axes, results, "start_scale")
    panel(axes, RELATIVE, "share of samples that the signal wins")
    said = "Dashed: the flip by mean field with attention, $c^*(N, M, H)$."
    return figure, f"Initial queries and keys in units of Condition (8)'s largest. {said}"


@picture
def arms(results: xr.Dataset) -> Drawn:
    """Training loss and attention on the winner with parts of the network frozen."""
    regimes = results.regime.values.tolist()
    figure, axes = canvas(2 * len(regimes), width=3.6)
    for i, regime in enumerate(regimes):
        key = "signal" if regime == "benign" else "strong"
        one = results.sel(regime=regime)
        lines(axes[2 * i], one.train_loss_curve, "step", "arm")
        lines(axes[2 * i + 1], one.attention_curve.sel(query="signal", key=key), "step", "arm")
        panel(axes[2 * i], "iteration", "training loss", regime, "xy")
        title = f"{regime}: signal query on the {key}"
        panel(axes[2 * i + 1], "iteration", "attention", title, "x", ylim=(-0.03, 1.03))
    return figure, f"Appendix A's settings; frozen parts stay as drawn. {BAND}"


@picture
def rival(results: xr.Dataset) -> Drawn:
    """Test loss over SNR and N on logarithmic axes, with the slopes of both theories."""
    figure, axes = canvas(width=5.6, height=4.0)
    boundaries = [
        Line(f"{CONTROL} = 2", theory.boundary(2.0), BLACK, ":"),
        Line(r"$N\,\mathrm{SNR}^3$ = 2", lambda n: (2.0 / np.asarray(n, float)) ** (1 / 3), RED, "--"),
    ]
    mesh = phase_diagram(axes, results.test_loss.mean("seed"), "snr", "samples", boundaries, True, True)
    figure.colorbar(mesh, ax=axes, label="test loss")
    panel(axes, "SNR", "samples N")
    return figure, "One signal and one noise token; mean over seeds."

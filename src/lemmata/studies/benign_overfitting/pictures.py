"""Drawings of this study's results."""

import numpy as np
import xarray as xr
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from lemmata.draw.phase import Line, phase_diagram
from lemmata.draw.style import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    ORANGE,
    RED,
    canvas,
    caption,
    plain_log_ticks,
)
from lemmata.measure.compare import Verdict
from lemmata.measure.levelset import level_set
from lemmata.results import settings, trial_at
from lemmata.status import DIVERGED
from lemmata.studies.benign_overfitting import theory

CUT = 0.2
"""The paper's cut between small and large test loss."""

LOSER = "#bbbbbb"


def phase(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Figure 1: (a) test loss over SNR and N, (b) the same cut at 0.2, with predicted and measured boundaries."""
    ratio = settings(results)["data.noise_ratio"]
    figure, (left, right) = canvas(2, sharey=True)
    by_snr = results.swap_dims(signal_norm="snr")
    mean = by_snr.test_loss.mean("seed")
    diverged = (by_snr.status == DIVERGED).any("seed")
    lines = [
        Line(
            rf"paper: $N\,\mathrm{{SNR}}^2 = {theory.PAPER_CONTROL:.0f}$",
            theory.boundary(theory.PAPER_CONTROL),
            RED,
            "--",
        ),
        Line(
            rf"mean field: $N\,\mathrm{{SNR}}^2 = 2C_p^2 = {theory.critical_control(ratio):.0f}$",
            theory.boundary(theory.critical_control(ratio)),
            BLACK,
            ":",
        ),
    ]
    law = level_set(by_snr.test_loss, CUT, "snr", "samples")
    if law.exponent.exists and np.isfinite([law.constant.low, law.constant.high]).all():
        lines.append(_measured(law.exponent, by_snr))
    mesh = phase_diagram(left, mean, "snr", "samples", lines, diverged=diverged)
    figure.colorbar(mesh, ax=left, label="test loss")
    above = (mean > CUT).astype(float).where(mean.notnull())
    cut = phase_diagram(
        right, above, "snr", "samples", lines, norm=BoundaryNorm([0, 0.5, 1], 256),
        cmap="cividis", diverged=diverged,
    )  # fmt: skip
    bar = figure.colorbar(cut, ax=right, ticks=[0.25, 0.75])
    bar.ax.set_yticklabels([f"≤ {CUT}", f"> {CUT}"])
    left.set(title="(a) test loss", xlabel=r"SNR $= |\mu|/(\sigma_p\sqrt{d})$", ylabel="samples N")
    right.set(title=f"(b) cut at {CUT}", xlabel=r"SNR $= |\mu|/(\sigma_p\sqrt{d})$")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)
    text = f"Test loss after training to loss {settings(results)['descent.target_loss']:g}, mean over"
    caption(figure, results, text, verdicts)
    return figure


def _measured(exponent, by_snr: xr.Dataset) -> Line:
    """The measured 0.2-level line with its interval, drawn through the centre of the grid."""
    centre = float(np.exp(np.log(by_snr.samples.astype(float)).mean()))
    at_centre = by_snr.assign_coords(size=by_snr.samples / centre).test_loss
    here = level_set(at_centre, CUT, "snr", "size")
    slope, place = here.exponent, here.constant

    def curve(n: np.ndarray) -> np.ndarray:
        return place.value * (n / centre) ** slope.value

    def bound(sign: float):
        side = place.high if sign > 0 else place.low
        tilt = (slope.high - slope.low) / 2

        def at(n: np.ndarray) -> np.ndarray:
            spread = np.hypot(np.log(side / place.value), tilt * np.log(n / centre))
            return curve(n) * np.exp(sign * spread)

        return at

    label = f"measured: SNR* ∝ $N^{{{slope.value:.2f}}}$ [{slope.low:.2f}, {slope.high:.2f}]"
    return Line(label, curve, ORANGE, "-", bound(-1), bound(1))


def dynamics(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Figures 3 and 4: values, logits and attention over the iterations, mean and range over the seeds."""
    figure, axes = canvas(4, width=3.6, height=3.2)
    kinds = {"signal": (BLUE, r"$\mu$"), "strong": (RED, r"$\xi_2$")}

    def band(ax, curve: xr.DataArray, colour: str, label: str, style: str = "-") -> None:
        known = curve.isel(step=slice(1, None))
        ax.plot(known.step, known.mean("seed"), style, color=colour, label=label)
        ax.fill_between(
            known.step, known.min("seed"), known.max("seed"), color=colour, alpha=0.2, linewidth=0
        )

    band(axes[0], results.signal_value_curve, BLUE, r"$y\,\mu^\top W_V w_O$")
    band(axes[0], results.strong_value_curve, RED, r"$y\,\xi_2^\top W_V w_O$")
    axes[0].set(title="values", ylabel="value, signed by label")
    for kind, (colour, name) in kinds.items():
        band(axes[1], results.logits_curve.sel(query="signal", key=kind), colour, rf"$\mu \to$ {name}")
        band(
            axes[1], results.logits_curve.sel(query="strong", key=kind), colour, rf"$\xi_2 \to$ {name}", "--"
        )
        band(axes[2], results.attention_curve.sel(query="signal", key=kind), colour, rf"$\mu \to$ {name}")
        band(
            axes[2],
            results.attention_curve.sel(query="strong", key=kind),
            colour,
            rf"$\xi_2 \to$ {name}",
            "--",
        )
    axes[1].set(title="attention logits", ylabel="query · key")
    axes[2].set(title="attention", ylabel="weight", ylim=(-0.03, 1.03))
    band(axes[3], results.train_loss_curve, BLACK, "training loss")
    test = results.test_loss
    axes[3].axhspan(float(test.min()), float(test.max()), color=ORANGE, alpha=0.25, linewidth=0)
    axes[3].axhline(float(test.mean()), color=ORANGE, label=f"test loss at the end: {float(test.mean()):.2f}")
    axes[3].set(title="loss", yscale="log", ylabel="logistic loss")
    for ax in axes:
        ax.set(xscale="log", xlabel="iteration")
        ax.legend(fontsize=7)
    f = settings(results)
    text = f"N = {f['data.samples']}, |μ| = {f['data.signal_norm']:g}. Lines: mean, bands: range over"
    caption(figure, results, text, verdicts)
    return figure


def times(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Steps to each loss level, against the axis and against the level, with the slopes of the theorem."""
    (name,) = [d for d in results.steps.dims if d != "seed"]
    label, power = {"signal_norm": (r"signal norm $|\mu|$", -2), "samples": ("samples N", 1)}[name]
    figure, (left, right) = canvas(2)
    x = np.asarray(results[name], float)
    reached = results.loss_steps.where(results.loss_steps > 0)
    for colour, level in zip(CYCLE, results.loss_level.values, strict=False):
        steps = reached.sel(loss_level=level)
        left.loglog(x, steps.mean("seed"), "o-", color=colour, label=f"ε = {level:g}", markersize=4)
        for seed in results.seed:
            left.plot(x, steps.sel(seed=seed), ".", color=colour, markersize=3, alpha=0.5)
    last = reached.isel(loss_level=-1).mean("seed")
    left.loglog(x, float(last[0]) * (x / x[0]) ** power, "--", color=LOSER, label=f"slope {power}")
    left.set(xlabel=label, ylabel="steps until training loss ≤ ε", title="time against size")
    eps = np.asarray(results.loss_level, float)
    for colour, value in zip(CYCLE, x, strict=False):
        right.loglog(
            eps, reached.sel({name: value}).mean("seed"), "o-", color=colour, markersize=4, label=f"{value:g}"
        )
    right.loglog(eps, float(last[0]) * eps[-1] / eps, "--", color=LOSER, label="slope −1")
    right.set(xlabel="target loss ε", title="time against target loss")
    plain_log_ticks(left.xaxis)
    left.legend(fontsize=7, ncols=2)
    right.legend(fontsize=7, title=label)
    caption(figure, results, "Steps to reach a training loss; points are seeds, lines their mean;", verdicts)
    return figure


def winner(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """How often the signal wins, and the test loss, over N SNR^2 in units of 2 C_p^2."""
    critical = theory.critical_control(settings(results)["data.noise_ratio"])
    figure, (left, right) = canvas(2)
    for colour, n in zip(CYCLE, results.samples.values, strict=False):
        part = results.sel(samples=n)
        ratio = np.asarray(part.control, float) / critical
        left.semilogx(
            ratio, part.signal_wins.mean("seed"), "o-", color=colour, label=f"N = {n}", markersize=4
        )
        right.semilogx(ratio, part.test_loss.mean("seed"), "o-", color=colour, label=f"N = {n}", markersize=4)
        for seed in part.seed:
            right.plot(ratio, part.test_loss.sel(seed=seed), ".", color=colour, markersize=3, alpha=0.5)
    for ax in (left, right):
        ax.axvline(1.0, color=BLACK, linestyle=":", label=r"mean field: $N\,\mathrm{SNR}^2 = 2C_p^2$")
        ax.set(xlabel=r"$N\,\mathrm{SNR}^2 / (2 C_p^2)$")
        plain_log_ticks(ax.xaxis)
        ax.legend(fontsize=7)
    right.axhline(theory.HARMFUL_LOSS_FLOOR_PROOF, color=RED, linestyle="--", linewidth=1)
    right.text(
        right.get_xlim()[0] * 1.1,
        theory.HARMFUL_LOSS_FLOOR_PROOF + 0.01,
        "floor of Lemma E.6",
        fontsize=7,
        color=RED,
    )
    left.set(ylabel="fraction of samples that the signal wins", title="winner")
    right.set(ylabel="test loss", title="generalisation")
    f = settings(results)
    text = f"Reduced variables drawn in law at d_h = {f['network.key_dim']:.0e}, d = {f['data.dim']:.0e};"
    caption(figure, results, text, verdicts)
    return figure


def stages(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Values and signal attention over accumulated step size, in units of eta |mu|^2 |w_O|^2 t, with the ends of the
    stages of one run."""
    figure, axes = canvas(results.sizes["control"], width=4.2, squeeze=False)
    noise = settings(results)["data.weak_noise"] ** 2 * settings(results)["data.dim"]
    for ax, control in zip(axes[0], results.control.values, strict=True):
        one = results.sel(control=control).isel(samples=-1, seed=0)
        time = one.time_curve * float(control) / float(one.samples) * noise
        ax.loglog(time, one.signal_value_curve, color=BLUE, label="value of the signal")
        ax.loglog(time, np.abs(one.strong_value_curve), color=RED, label="|value of the strong noise|")
        attention = one.attention_curve.sel(query="signal", key="signal")
        ax.loglog(time, attention, color=GREEN, label="attention on the signal")
        seen = time.dropna("step")
        for name, style, label in (
            ("signal_leads", ":", "T1"),
            ("slope_leaves", "--", "T2"),
            ("steps", "-", "T3"),
        ):
            at = np.interp(float(one[name]), seen.step, seen)
            ax.axvline(at, color=LOSER, linestyle=style, linewidth=1)
            ax.text(at, 2e-8, label, fontsize=7, ha="right")
        ax.set(
            title=rf"$N\,\mathrm{{SNR}}^2$ = {control:.3g}",
            xlabel=r"$\eta |\mu|^2 |w_O|^2\, t$",
            ylim=(1e-8, 100),
        )
        ax.legend(fontsize=7, loc="upper left")
    text = f"One run each, N = {int(results.samples[-1])}; T1: the signal leads 3M times, T2: the loss derivative decays;"
    caption(figure, results, text, verdicts)
    return figure


def leak(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Attention off the signal at the end, against the key dimension."""
    figure, ax = canvas(1, width=5.2)
    dims = np.asarray(results.key_dim, float)
    for colour, kind in zip((BLUE, RED, GREEN), results["query"].values, strict=True):
        off = 1 - results.attention.sel(query=kind, key="signal")
        if bool(off.isnull().all()):
            continue
        ax.loglog(dims, off.mean("seed"), "o-", color=colour, label=f"{kind} query", markersize=4)
        for seed in results.seed:
            ax.plot(dims, off.sel(seed=seed), ".", color=colour, markersize=3, alpha=0.5)
    first = float((1 - results.attention.sel(query="signal", key="signal")).mean("seed")[0])
    ax.loglog(dims, first * (dims / dims[0]) ** -0.5, "--", color=LOSER, label=r"slope $-1/2$ (Eqs 64, 65)")
    ax.set(xlabel=r"key dimension $d_h$", ylabel="attention off the signal at the end")
    ax.legend(fontsize=8)
    caption(figure, results, r"Benign regime, reduced variables drawn in law;", verdicts)
    return figure


def noise_ratio(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Test loss over C_p and N SNR^2, with the mean-field boundary 2 C_p^2."""
    figure, ax = canvas(1, width=5.6)
    mean = results.test_loss.mean("seed")
    mesh = phase_diagram(
        ax,
        mean,
        "relative_control",
        "noise_ratio",
        [Line(r"mean field: $2C_p^2$", np.ones_like, BLACK, ":")],
        True,
        True,
    )
    figure.colorbar(mesh, ax=ax, label="test loss")
    ax.set(xlabel=r"$N\,\mathrm{SNR}^2 / (2 C_p^2)$", ylabel=r"strong over weak noise $C_p$")
    plain_log_ticks(ax.xaxis, ax.yaxis)
    ax.legend(fontsize=8, loc="upper left", facecolor="white", frameon=True)
    caption(figure, results, f"N = {settings(results)['data.samples']}; mean over", verdicts)
    return figure


def no_strong_token(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Test loss and attention without a strong noise token."""
    figure, (left, right) = canvas(2)
    uniform = 1 / settings(results)["data.tokens"]
    for colour, n in zip(CYCLE, results.samples.values, strict=False):
        part = results.sel(samples=n)
        left.semilogx(
            part.control, part.test_loss.mean("seed"), "o-", color=colour, label=f"N = {n}", markersize=4
        )
        signal = part.attention.sel(query="signal", key="signal").mean("seed")
        strong = part.attention.sel(query="signal", key="strong").mean("seed")
        right.semilogx(
            part.control, signal, "o-", color=colour, label=f"on the signal, N = {n}", markersize=4
        )
        right.semilogx(
            part.control, strong, "s--", color=colour, label=f"on noise token 2, N = {n}", markersize=3
        )
    left.axvline(2.0, color=BLACK, linestyle=":", label=r"$2C_p^2 = 2$")
    right.axhline(uniform, color=LOSER, linestyle="--", label="uniform 1/M")
    left.set(xlabel=r"$N\,\mathrm{SNR}^2$", ylabel="test loss", title="generalisation")
    right.set(
        xlabel=r"$N\,\mathrm{SNR}^2$",
        ylabel="attention of the signal query",
        title="attention",
        ylim=(0, 1.03),
    )
    for ax in (left, right):
        ax.legend(fontsize=7)
    caption(figure, results, r"$C_p = 1$: no noise token is special. Mean over", verdicts)
    return figure


def agreement(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """The four simulators' losses on the same draw, and how far each is from the weights' own."""
    figure, (left, right) = canvas(2)
    one = results.isel(seed=0, orthogonal_noise=0)
    direct = one.train_loss_curve.sel(simulator="direct")
    styles = {"direct": ("-", 4.0), "row": ("-", 2.2), "gram": ("--", 1.4), "leading-order": (":", 1.6)}
    for colour, (name, (style, width)) in zip((LOSER, BLUE, ORANGE, RED), styles.items(), strict=True):
        curve = one.train_loss_curve.sel(simulator=name)
        left.loglog(curve.step[1:], curve[1:], style, color=colour, linewidth=width, label=name)
        if name != "direct":
            off = np.abs(
                results.train_loss_curve.sel(simulator=name)
                / results.train_loss_curve.sel(simulator="direct")
                - 1
            )
            worst = off.max(("seed", "orthogonal_noise"))
            right.loglog(worst.step[1:], np.maximum(worst[1:], 1e-17), style, color=colour, label=name)
    right.axhline(1e-9, color=BLACK, linewidth=0.8, label="1e-9")
    left.set(xlabel="iteration", ylabel="training loss", title="one draw, four simulators")
    right.set(xlabel="iteration", ylabel="relative distance from direct", title="worst over all draws")
    left.set_xlim(1, float(direct.step.max()))
    for ax in (left, right):
        ax.legend(fontsize=7)
    caption(figure, results, "The exact forms agree to rounding; the leading order does not;", verdicts)
    return figure


def theorem(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Test loss and time against the target loss, inside Condition 4.1."""
    figure, (left, right) = canvas(2)
    part = results.isel(fraction=0) if "fraction" in results.dims else results
    eps = np.asarray(part.target_loss, float)
    for colour, control in zip(CYCLE, part.control.values, strict=False):
        one = part.sel(control=control)
        label = rf"$N\,\mathrm{{SNR}}^2$ = {control:.3g}"
        for ax, values in ((left, one.test_loss), (right, one.time)):
            ax.loglog(eps, values.mean("seed"), "o-", color=colour, markersize=4, label=label)
            ax.plot(eps, values.transpose("target_loss", "seed"), ".", color=colour, markersize=3, alpha=0.5)
    power = theory.fresh_loss_exponent(settings(results)["data.tokens"])
    start = float(part.test_loss.mean("seed").max())
    if start < theory.HARMFUL_LOSS_FLOOR_PROOF:
        guide = start * (eps / eps[0]) ** power
        left.loglog(eps, guide, "--", color=LOSER, label=f"slope {power:.2g} (mean field)")
    else:
        left.axhline(theory.HARMFUL_LOSS_FLOOR_PROOF, color=RED, linestyle="--", label="floor of Lemma E.6")
    left.set(xlabel="target loss ε", ylabel="test loss", title="generalisation")
    right.set(xlabel="target loss ε", ylabel=r"$\sum \eta_t$ until training loss ≤ ε", title="time")
    for ax in (left, right):
        ax.legend(fontsize=7)
    caption(figure, results, "Condition 4.1 met with constants 1;", verdicts)
    return figure


def feedback(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Who wins over N SNR^2, for several scales of the initial queries and keys."""
    figure, ax = canvas(1, width=5.6)
    critical = theory.critical_control(settings(results)["data.noise_ratio"])
    for colour, scale in zip(CYCLE, results.start_scale.values, strict=False):
        part = results.sel(start_scale=scale).signal_wins.mean("seed")
        ax.plot(
            part.control / critical, part, "o-", color=colour, markersize=4, label=f"start scale {scale:g}"
        )
        s = theory.setting(trial_at(results, start_scale=scale))
        at = theory.critical_ratio(s.samples, s.tokens, s.noise_ratio, s.feedback)
        ax.axvline(at, color=colour, linestyle=":")
    ax.set(xlabel=r"$N\,\mathrm{SNR}^2 / (2 C_p^2)$", ylabel="fraction of samples that the signal wins")
    ax.legend(fontsize=8, title="dotted: $c^*(N, M, H)$")
    caption(figure, results, "Initial queries and keys in units of Condition (8)'s largest;", verdicts)
    return figure


def arms(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Training loss, winning value and attention with parts of the network frozen."""
    figure, axes = canvas(2 * results.sizes["regime"], width=3.6)
    for i, regime in enumerate(results.regime.values):
        key = "signal" if regime == "benign" else "strong"
        for colour, arm in zip(CYCLE, results.arm.values, strict=False):
            one = results.sel(regime=regime, arm=arm)
            attention = one.attention_curve.sel(query="signal", key=key)
            for ax, curve in ((axes[2 * i], one.train_loss_curve), (axes[2 * i + 1], attention)):
                ax.plot(one.step[1:], curve.mean("seed")[1:], color=colour, label=arm)
        axes[2 * i].set(title=f"{regime}: training loss", yscale="log")
        axes[2 * i + 1].set(title=f"{regime}: attention on the {key}", ylim=(-0.03, 1.03))
    for ax in axes:
        ax.set(xscale="log", xlabel="iteration")
        ax.legend(fontsize=7)
    caption(figure, results, "Lines: mean over", verdicts)
    return figure


def rival(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    """Test loss over SNR and N on logarithmic axes, with the slopes of both theories."""
    figure, ax = canvas(1, width=5.6)
    mean = results.test_loss.mean("seed")
    lines = [
        Line(r"$N\,\mathrm{SNR}^2$ = 2", theory.boundary(2.0), BLACK, ":"),
        Line(r"$N\,\mathrm{SNR}^3$ = 2", lambda n: (2.0 / np.asarray(n, float)) ** (1 / 3), RED, "--"),
    ]
    mesh = phase_diagram(ax, mean, "snr", "samples", lines, True, True)
    figure.colorbar(mesh, ax=ax, label="test loss")
    ax.set(xlabel="SNR", ylabel="samples N")
    ax.legend(fontsize=8)
    caption(figure, results, "One signal and one noise token; mean over", verdicts)
    return figure

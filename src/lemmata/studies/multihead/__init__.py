"""Multi-head attention: with many heads the loss is almost convex, and explicit constants say how almost."""

from lemmata.study import Study

STUDY = Study(
    id="multihead",
    title="Optimisation and generalisation of multi-head attention",
    summary=(
        "The negative curvature of the training loss falls like 1/sqrt(heads); from that follow finite-time bounds on "
        "training and on the generalisation gap with explicit constants, and, for a mixture of tokens, a good start "
        "after one randomised step and margins that attention reaches and a linear model does not."
    ),
    citation=(
        "@article{deora2023multihead,\n"
        "  title={On the Optimization and Generalization of Multi-head Attention},\n"
        "  author={Deora, Puneesh and Ghaderi, Rouzbeh and Taheri, Hossein and Thrampoulidis, Christos},\n"
        "  journal={arXiv preprint arXiv:2310.12680},\n"
        "  year={2023}\n"
        "}"
    ),
    figures={
        "fig2": "Token mixture, GD with one step size for all numbers of heads",
        "fig3": "Token mixture, GD with a step growing as sqrt(heads), and Adam",
        "fig4": "Planted attention, GD with a step growing as sqrt(heads)",
        "fig5": "Planted attention, momentum and Adam",
        "curvature": "Negative curvature per unit of loss against the number of heads, at random weights",
        "hessian-path": "Smallest Hessian eigenvalue along a training, against its bound",
        "looseness": "Measured over bound, for every inequality of the theory",
        "inside-conditions": "Training, ball, stability and gap with the heads and steps that the theorems ask for",
        "two-step-sizes": "Many heads from zero are one head with two step sizes",
        "first-phase": "What one randomised step from zero leaves, against the number of samples",
        "margins": "NTK, linear and saturated-attention margins against sparsity and signal",
        "saturation": "Leaked attention and margin of the saturated head",
        "gap": "Generalisation gap against the number of samples on planted attention",
    },
    claims={
        "curvature-falls": "Negative curvature per unit of loss falls as 1/sqrt(heads)",
        "weak-convexity": "Along a training, the smallest eigenvalue stays above -beta_3 loss / sqrt(heads)",
        "path-bounds": "Along a training, gradient and Hessian norms stay below beta_1 loss and beta_2",
        "inequalities": "Every inequality on gradient, curvature, segments and expansion holds at random points",
        "fixed-step-slower": "At one step size, more heads train slower",
        "fixed-step-margin": "At one step size, more heads have a smaller margin",
        "one-head-margin": "A single head reaches the margin of saturated attention",
        "rate-in-steps": "The training loss falls as 1/steps",
        "sqrt-step-faster": "With a step growing as sqrt(heads), several heads train faster than one",
        "sqrt-step-margin": "With a step growing as sqrt(heads), more heads have a smaller margin",
        "adam-faster": "Under Adam, more heads train faster",
        "adam-margin": "Under Adam, several heads have a smaller margin than one",
        "two-step-sizes": "Heads that start at zero are one head whose attention learns heads times slower",
        "planted-faster": "On planted attention with a step growing as sqrt(heads), more heads train faster",
        "planted-alignment": "The trained weights align with the planted ones",
        "planted-momentum-faster": "On planted attention with momentum, more heads train faster",
        "planted-adam-faster": "On planted attention with Adam, more heads train faster",
        "training-theorem": "Theorem 1: the mean training loss stays below 2 L(theta) + 5 Delta^2 / (4 eta K)",
        "ball-radius": "Theorem 1: no iterate leaves the ball of radius 4 Delta",
        "descent": "Lemmas 7 and 10: every step descends enough, and stays within 3 Delta of the target",
        "stability": "Lemma 11: leave-one-out runs stay as close as promised",
        "gap-theorem": "Theorem 2: the expected generalisation gap stays below its bound",
        "first-phase-printed": "The first step's residual around zeta/2, as printed, falls as 1/sqrt(samples)",
        "first-phase-corrected": "The first step's residual around zeta/4 falls as 1/sqrt(samples)",
        "ntk-margin-positive": "After the first step the NTK margin is positive",
        "ntk-margin-corrected": "The NTK margin exceeds its bound with the corrected constants",
        "margin-order": "saturated attention >= NTK >= linear margin, where the signal is weak enough",
        "margin-order-everywhere": "saturated attention >= NTK >= linear margin, for every signal, as printed",
        "saturation": "The saturated head leaks and decides as Proposition 3 says",
        "rate-in-samples": "The generalisation gap falls at least as fast as 1/samples",
    },
    package=__name__,
)

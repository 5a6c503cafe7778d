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
        "second-phase": "Training after the randomised first step, beside training from zero",
        "good-start": "Training after the first step with the heads and steps that the theorems ask for",
        "realizability": "Heads that the target of a good start needs, against those asked for",
        "margins": "NTK, linear and saturated-attention margins against sparsity and signal",
        "saturation": "Leaked attention and margin of the saturated head",
        "gap": "Generalisation gap against the number of samples on planted attention",
    },
    claims={
        "curvature-falls": "Negative curvature per unit of loss falls as 1/sqrt(heads)",
        "weak-convexity": "Along a training, the smallest eigenvalue stays above -beta_3 loss / sqrt(heads)",
        "path-bounds": "Along a training, gradient and Hessian norms stay below beta_1 loss and beta_2",
        "inequalities": "Every inequality on gradient, curvature, segments and short descents holds at random points",
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
        "gap-from-stability": "Lemma 3: the expected gap stays below twice the slope times the leave-one-out distance",
        "first-phase-printed": "The first step's residual around zeta/2, as printed, falls as 1/sqrt(samples)",
        "first-phase-corrected": "The first step's residual around zeta/4 falls as 1/sqrt(samples)",
        "ntk-margin-positive": "After the first step the NTK margin is positive",
        "good-start-bounds": "After the first step, head norms and outputs stay below B_2 and B_Phi",
        "second-phase-rate": "After the first step the training loss falls as 1/steps",
        "second-phase-error": "After the first step training leads to no test error",
        "first-step-helps": "With a million heads, training after the first step beats training from zero",
        "good-start-theorem": "Theorem 1 after the first step: mean loss and distances stay below their bounds",
        "regret": "Lemma 8: the mean loss stays below the regret bound measured along the run",
        "mean-loss": "Lemma 9: the mean loss stays below 2 L(theta) + 3 Delta^2/(4 eta K) + L(theta_0)/(2K)",
        "segments": "Eq. 15 and Prop. 4: curvature and loss between iterate and target stay below their bounds",
        "good-start-margin": "The NTK margin that the second phase starts with exceeds its corrected bound",
        "realizability": "Prop. 7: the target of a good start needs no more heads than asked for",
        "ntk-margin-corrected": "The NTK margin exceeds its bound with the corrected constants",
        "margin-order": "saturated attention >= NTK >= linear margin, where the signal is weak enough",
        "margin-order-everywhere": "saturated attention >= NTK >= linear margin, for every signal, as printed",
        "saturation": "The saturated head leaks and decides as Proposition 3 says",
        "rate-in-samples": "The generalisation gap falls at least as fast as 1/samples",
    },
    package=__name__,
)

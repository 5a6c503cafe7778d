"""Multi-head attention: with many heads the loss is almost convex, and explicit constants say how almost."""

from lemmata.studies.multihead.claims import CLAIMS
from lemmata.studies.multihead.claims.ledger import LEDGER
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
        "decoder-bounds": "The same for pooling and last-token decoders",
        "inside-conditions": "Training, ball, stability and gap with the heads and steps that the theorems ask for",
        "linear-control": "The same trainings with attention left at zero",
        "frontier": "Heads and step sizes up to where Theorem 1's bound breaks, on planted attention",
        "two-step-sizes": "Many heads from zero are one head with two step sizes",
        "decoders": "Token mixture with full, pooling and last-token decoders",
        "first-phase": "What one randomised step from zero leaves, against the number of samples",
        "first-phase-scaling": "The first step's residual against signal and dimension",
        "second-phase": "Training after the randomised first step, beside training from zero and without attention",
        "good-start": "Training after the first step with the heads and steps that the theorems ask for",
        "realizability": "Heads that the target of a good start needs, against those asked for",
        "margins": "NTK, linear and saturated-attention margins against sparsity and signal",
        "saturation": "Leaked attention and margin of the saturated head",
        "gap": "Generalisation gap against the number of samples on planted attention",
    },
    claims=CLAIMS,
    ledger=LEDGER,
    package=__name__,
)

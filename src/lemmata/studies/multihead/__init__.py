"""Multi-head attention: with many heads the loss is almost convex, and explicit constants say how almost."""

from lemmata.study import Study

STUDY = Study(
    id="multihead",
    title="Optimisation and generalisation of multi-head attention",
    summary=(
        "With H heads the negative curvature of the training loss is at most of order loss/sqrt(H). From this follow "
        "finite-time bounds, with explicit constants, on the training loss and the generalisation gap. For a mixture of tokens "
        "one randomised step from zero gives a good start. Saturated attention has a margin that a linear model does not "
        "reach."
    ),
    citation=(
        "@article{deora2023multihead,\n"
        "  title={On the Optimization and Generalization of Multi-head Attention},\n"
        "  author={Deora, Puneesh and Ghaderi, Rouzbeh and Taheri, Hossein and Thrampoulidis, Christos},\n"
        "  journal={arXiv preprint arXiv:2310.12680},\n"
        "  year={2023}\n"
        "}"
    ),
    version="Transactions on Machine Learning Research, OpenReview wTGjn7JvYK, with appendices A to H",
    package=__name__,
)

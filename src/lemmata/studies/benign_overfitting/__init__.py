"""Benign overfitting of a transformer: fitting noise need not hurt, and N SNR^2 says when it does."""

from lemmata.study import Study

STUDY = Study(
    id="benign-overfitting",
    title="Benign overfitting of a transformer",
    summary=(
        "One softmax attention layer with a frozen read-out, trained by full-batch gradient descent on one signal token "
        "among noise tokens. It always fits its training set; whether it generalises is decided by N SNR^2: above a "
        "boundary attention and values reinforce each other on the signal (benign overfitting), below it on the "
        "strongest noise token of each sample (harmful overfitting)."
    ),
    citation="""
@inproceedings{jiang2024unveil,
  title     = {Unveil Benign Overfitting for Transformer in Vision: Training Dynamics, Convergence, and Generalization},
  author    = {Jiang, Jiarui and Huang, Wei and Zhang, Miao and Suzuki, Taiji and Nie, Liqiang},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}
""",
    version="NeurIPS 2024, with appendices A to H",
    package=__name__,
)

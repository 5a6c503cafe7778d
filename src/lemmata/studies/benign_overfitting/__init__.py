"""Benign overfitting of a transformer: fitting noise need not hurt, and N SNR^2 says when it does."""

from lemmata.studies.benign_overfitting.claims import CLAIMS, LEDGER
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
    figures={
        "fig1": "Test loss over SNR and the number of samples, with the phase boundary",
        "fig3": "Training dynamics in the benign regime",
        "fig4": "Training dynamics in the harmful regime",
        "time-benign": "Convergence time against signal norm and target loss, benign regime",
        "time-harmful": "Convergence time against samples and target loss, harmful regime",
        "asymptotic-boundary": "The phase boundary in the theorem's own regime (key dimension 1e12)",
        "literal-constants": "The three stages where the proof's explicit constants apply",
        "theorem-benign": "Theorem 4.1 inside its own conditions: test loss as the target loss goes to 0",
        "theorem-harmful": "Theorem 4.2 inside its own conditions: N SNR^2 at most 4",
        "feedback": "How attention feedback moves the boundary: the flip against the initial scale of queries and keys",
        "attention-leak": "Attention left on the losing tokens against the key dimension",
        "arms": "Queries and keys frozen, values frozen, all trained",
        "noise-ratio": "The critical N SNR^2 against the strength of the strong noise token",
        "no-strong-token": "Without a strong noise token (C_p = 1), outside the theory",
        "rival-transformer": "Samples needed against SNR, below SNR 1",
        "rival-convolution": "The same for a convolutional network with ReLU^3 filters",
        "agreement": "Four simulators of the same training",
    },
    claims=CLAIMS,
    ledger=LEDGER,
    package=__name__,
)

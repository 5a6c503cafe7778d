"""Group imbalance: what fraction, mean and covariance of a group do to learning one hidden layer on a Gaussian mixture."""

from lemmata.studies.group_imbalance.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="group-imbalance",
    title="Group imbalance: one hidden layer on a Gaussian mixture",
    summary=(
        "Inputs come from a Gaussian mixture whose components are groups, labels from a teacher of one hidden layer; a student "
        "of the same shape is fitted by gradient descent. The document writes sample complexity, speed, error and the risk of "
        "every group as functions of the mixture, and concludes that more samples of a minority do not always help. "
        "Beside its order-wise bounds stand the sharp constants of maximum likelihood."
    ),
    citation="""
@article{li2024group,
  title   = {How Does Promoting the Minority Fraction Affect Generalization? A Theoretical Study of the One-Hidden-Layer
             Neural Network on Group Imbalance},
  author  = {Li, Hongkang and Zhang, Shuai and Zhang, Yihua and Wang, Meng and Liu, Sijia and Chen, Pin-Yu},
  journal = {IEEE Journal of Selected Topics in Signal Processing},
  year    = {2024}
}
""",
    figures={
        "fig4-2": "Success over dimension and samples",
        "fig4-3a": "Success over the mean of a group and samples",
        "fig4-3b": "Success over the covariance of a group and samples",
        "fig4-4a": "Descent with growing means",
        "fig4-4b": "Descent with growing covariance",
        "fig4-5a": "Rate of convergence against the number of neurons",
        "fig4-5b": "Error of the weights against samples",
        "fig4-6a": "Risks against the covariance of the minority",
        "fig4-6b": "Risks against the mean of the minority",
        "fig4-7a": "Risks against the fraction of a minority of small covariance",
        "fig4-7b": "Risks against the fraction of a minority of large covariance",
        "figC-1": "Descent from tensor, local and far starts",
        "tensor-easy": "The same where the tensor initialisation has enough signal",
        "table-4-1": "Table 4.1 from the closed forms",
        "fisher": "The same columns by the Fisher information",
        "lemmas": "Both sides of Lemmas C.4.1 and C.4.4",
        "deviations": "Moments and derivatives of samples against the population's",
        "ball": "Curvature inside the ball of Lemma C.3.1",
        "lipschitz": "How fast Hessians change around W*",
        "activations": "Error and descent with tanh and erf",
        "noise": "Where gradient noise keeps the iterates",
    },
    claims=CLAIMS,
    package=__name__,
    ledger=LEDGER,
)

"""Group imbalance: what fraction, mean and covariance of a group do to learning one hidden layer on a Gaussian mixture."""

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
    version="H. Li, doctoral thesis, Rensselaer Polytechnic Institute, December 2024: "
    "chapter 4 and appendix C",
    package=__name__,
)

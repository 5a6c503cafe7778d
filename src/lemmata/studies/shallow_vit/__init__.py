"""Shallow vision transformers: how many samples and steps, and what removing tokens saves."""

from lemmata.study import Study

STUDY = Study(
    id="shallow-vit",
    title="Shallow vision transformers: sample complexity and token sparsification",
    summary=(
        "A single-head attention layer with a two-layer ReLU perceptron learns a majority vote over tokens. The theory "
        "gives the samples and steps needed as functions of the fraction of label-relevant tokens, the token noise and "
        "the error of the initial model, says that attention concentrates on relevant tokens, and that removing "
        "irrelevant or noisy tokens helps."
    ),
    citation="""
@inproceedings{li2023shallowvit,
  title     = {A Theoretical Understanding of Shallow Vision Transformers: Learning, Generalization, and Sample Complexity},
  author    = {Li, Hongkang and Wang, Meng and Liu, Sijia and Chen, Pin-Yu},
  booktitle = {International Conference on Learning Representations},
  year      = {2023}
}
""",
    version="ICLR 2023, with appendices A to G; [T] is H. Li, doctoral thesis, Rensselaer Polytechnic Institute, "
    "December 2024: chapter 2 and appendix A",
    package=__name__,
)

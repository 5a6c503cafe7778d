"""The graph transformer: what self-attention and positions are worth, against convolution."""

from lemmata.study import Study

STUDY = Study(
    id="graph-transformer",
    title="Graph transformer: self-attention and positions, against convolution",
    summary=(
        "One attention layer with a trainable bias for every distance learns to label the nodes of a graph by the vote of "
        "discriminative nodes at the core distance. Attention settles on class-relevant nodes, the bias on the distance with "
        "the largest average winning margin. By the theory a convolution, even on the core neighbourhood, needs gamma^-2 times "
        "more labels and steps."
    ),
    citation="""
@inproceedings{li2024graph,
  title     = {What Improves the Generalization of Graph Transformers? A Theoretical Dive into the Self-attention and Positional
               Encoding},
  author    = {Li, Hongkang and Wang, Meng and Ma, Tengfei and Liu, Sijia and Zhang, Zaixi and Chen, Pin-Yu},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}
""",
    version="H. Li, doctoral thesis, Rensselaer Polytechnic Institute, December 2024: "
    "chapter 3 and appendix B",
    package=__name__,
)

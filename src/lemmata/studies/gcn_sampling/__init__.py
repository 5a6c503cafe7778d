"""Graph convolutions trained with a sampled graph: sampling amounts to another, column-scaled adjacency."""

from lemmata.study import Study

STUDY = Study(
    id="gcn-sampling",
    title="Graph convolutions trained with graph topology sampling",
    summary=(
        "A three-layer graph convolution is trained while the nodes of the graph are sampled anew in every step. On average "
        "that is training with an effective adjacency A* = A P*, whose columns are scaled group by group. Where A* describes "
        "the labels, the trained network predicts them. The labels and neurons that it needs grow with the norm of A*."
    ),
    citation="""
@inproceedings{li2022generalization,
  title     = {Generalization Guarantee of Training Graph Convolutional Networks with Graph Topology Sampling},
  author    = {Li, Hongkang and Wang, Meng and Liu, Sijia and Chen, Pin-Yu and Xiong, Jinjun},
  booktitle = {International Conference on Machine Learning},
  pages     = {13014--13051},
  year      = {2022}
}
""",
    version="H. Li, doctoral thesis, Rensselaer Polytechnic Institute, December 2024: "
    "chapter 5 and appendix D",
    package=__name__,
)

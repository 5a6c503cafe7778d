"""Graph convolutions trained with a sampled graph: sampling amounts to another, column-scaled adjacency."""

from lemmata.studies.gcn_sampling.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="gcn-sampling",
    title="Graph convolutions trained with graph topology sampling",
    summary=(
        "A three-layer graph convolution is trained while nodes of the graph are sampled anew in every step. On average that is training "
        "with an effective adjacency A* = A P*, whose columns are scaled group by group; where A* describes the labels, the trained "
        "network predicts them, with labels and neurons that grow with the norm of A*."
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
    figures={
        "sampled": "The adjacency with its groups, its effective and a sampled version; how far samples lie from it",
        "fig5-1": "Test error over labelled nodes, for several norms of A*",
        "fig5-2": "Test error over neurons, for several norms of A*",
        "labels-width": "Test error over labelled nodes, for several widths",
        "fig5-3a": "Three datasets on an unbalanced graph, the document's sampling",
        "fig5-3b": "Three datasets on an unbalanced graph, FastGCN",
        "fig5-4a": "Three datasets on a balanced graph, the document's sampling",
        "fig5-4b": "Three datasets on a balanced graph, FastGCN",
        "twin": "Training with a sampled graph beside its twin with A*, over the sampling rate",
        "chung-lu": "The same twins on Chung-Lu graphs",
        "file": "Samplers on a graph from a file",
        "rates": "Leaving out nodes of high or of low degree",
        "realisable": "Labels of the concept class: test error over the sampling rate",
        "samplers": "Nine samplers on the same task",
        "algorithm": "Algorithm 2 in full beside the practical setting",
        "near-start": "Signs, coupling and smoothing near the random start",
        "existence": "The pseudo-network of the proof, and the start as a Gaussian, over the width",
        "alternative": "The first rounds of descent: what a move with random signs and what weight decay take off",
        "curvature": "Curvature and weight decay after rounds of several lengths",
        "agreement": "Training in the receptive field and on the whole graph",
    },
    claims=CLAIMS,
    package=__name__,
    ledger=LEDGER,
)

"""The graph transformer: what self-attention and positions are worth, against convolution."""

from lemmata.studies.graph_transformer.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="graph-transformer",
    title="Graph transformer: self-attention and positions, against convolution",
    summary=(
        "One attention layer with a trainable bias for every distance learns to label the nodes of a graph by the vote of "
        "discriminative nodes at the core distance. Attention settles on class-relevant nodes, the bias on the distance with "
        "the "
        "largest average winning margin; a convolution, even on the core neighbourhood, is said to need gamma^-2 times "
        "more "
        "labels and steps."
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
    figures={
        "fig3-3a": "Success over the share of discriminative nodes and the number of labels",
        "fig3-3a-once": "The same with every label used once",
        "fig3-3a-confused": "The same with many confusion nodes",
        "fig3-3a-blocks": "The same on block graphs, where shares are even over the nodes",
        "fig3-3b": "Success over the confusion ratio and the number of labels",
        "fig3-4": "Test loss along training for several shares of flipped labels",
        "fig3-5": "Attention on class-relevant nodes along training",
        "fig3-6": "Labels needed by convolution and transformer, on the same sets",
        "figB-6": "Figures 3.7 and B.6: steps needed over the share of discriminative nodes",
        "steps-even": "The same on block graphs, both learners on the same sets",
        "bias": "The learned bias beside the average winning margin",
        "learners": "Transformer with and without positions, on the core, and convolution",
        "samplers": "Four ways of sampling nodes",
        "neurons": "Lucky neurons, keys, queries and values along training",
        "growth": "Lucky neurons, b and keys over time, against the powers of the lemmas",
        "step-size": "Steps needed over the step size",
        "start-delta": "Steps needed over the initial error of keys and queries",
        "start-sigma": "Steps needed over the initial error of values",
        "start-xi": "Steps needed over the initial spread of the neurons",
        "nearest": "Attention at distance 1 only, where the core is there and where it is not",
        "drawing": "A small graph, and what one node attends to",
        "clusters": "Absolute positions beside the features, where labels are votes of clusters",
        "graph-labels": "Labels of whole graphs, with and without distances",
        "four-classes": "Four classes, each sign with a core distance of its own",
        "agreement": "Two ways to the same training",
        "tables": "Tables B.1 to B.5 and B.8 of a graph: discriminative nodes, margins, balance",
    },
    claims=CLAIMS,
    package=__name__,
    ledger=LEDGER,
)

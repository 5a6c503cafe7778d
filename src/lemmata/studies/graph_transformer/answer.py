"""Which distance a graph transformer attends to and how many labels it needs, in plain English."""

from typing import Any

from lemmata.answer import Answer, needed
from lemmata.studies.graph_transformer import theory


def success(trial: Any) -> bool:
    """Whether there are as many labels as (3.9) asks for with constant 1; on a graph file, whether the core votes right."""
    if trial.data.file:
        return theory.surveys.survey(trial.data.file, trial.data.buckets - 1).inconsistent < 0.5
    return trial.data.labelled >= theory.transformer_labels(theory.setting(trial))


def sentence(trial: Any) -> str:
    if trial.data.file:
        found = theory.surveys.survey(trial.data.file, trial.data.buckets - 1)
        return f"The vote of the core neighbourhood is wrong for {found.inconsistent:.1%} of the nodes of this graph."
    s, graph = theory.setting(trial), theory.measured(trial.data)
    labels = theory.transformer_labels(s)
    bound = (
        f"; the graph has only {trial.data.nodes:,} nodes, so that the bound is vacuous"
        if labels > trial.data.nodes
        else ""
    )
    return (
        f"Attention should find the core at distance {graph.core}; the test loss is then at most "
        f"{theory.loss_bound(s.inconsistent):.2g}. For that (3.9) with constant 1 asks for {needed(labels, 'labels')}{bound}. "
        f"Here there are {trial.data.labelled:,}."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="enough labels by (3.9)",
    inputs=(
        *("data.labelled", "data.discriminative", "data.confusion", "data.flipped", "data.nodes"),
        *("data.degree", "data.core", "network.value_error"),
    ),
    main=("core distance", "test loss at most", "labels, order of magnitude", "steps, order of magnitude"),
    counts=("labels", "steps"),
    useless_from={"test loss at most": 1.0},
    claims=("transformer-steps", "flips-bound"),
)

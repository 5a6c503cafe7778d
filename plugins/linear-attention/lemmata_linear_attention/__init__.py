"""Training dynamics of in-context learning in linear attention: Zhang, Singh, Latham and Saxe, ICML 2025."""

from lemmata.study import Study

STUDY = Study(
    id="linear-attention",
    title="In-context learning in linear attention: from saddle to saddle",
    summary="Linear attention with separate keys and queries learns in-context regression one eigenvector at a time. "
    "From a small start the loss visits D + 1 plateaus whose heights are known.",
    citation="""
@inproceedings{zhang2025training,
  title     = {Training Dynamics of In-Context Learning in Linear Attention},
  author    = {Zhang, Yedi and Singh, Aaditya K. and Latham, Peter E. and Saxe, Andrew},
  booktitle = {International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  pages     = {76047},
  year      = {2025}
}
""",
    version="ICML 2025, PMLR 267",
    package=__name__,
)

"""Chain of thought against in-context learning: a layer that votes step by step."""

from lemmata.study import Study

STUDY = Study(
    id="chain-of-thought",
    title="Chain of thought, against in-context learning",
    summary=(
        "One attention layer trained on K-step reasoning prompts learns to attend, at each step, to the examples at the same "
        "step with the same input. Its output is their vote. Step by step it reasons right wherever each step is right more "
        "often than any other outcome. Asked in one go, it needs the likeliest final label to be the right one."
    ),
    citation="""
@article{li2024training,
  title   = {Training Nonlinear Transformers for Chain-of-Thought Inference: A Theoretical Generalization Analysis},
  author  = {Li, Hongkang and Wang, Meng and Lu, Songtao and Cui, Xiaodong and Chen, Pin-Yu},
  journal = {arXiv:2410.02167},
  year    = {2024}
}
""",
    version="H. Li, doctoral thesis, Rensselaer Polytechnic Institute, December 2024: "
    "chapter 7 and appendix F",
    package=__name__,
)

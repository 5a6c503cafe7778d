"""Gradient descent on a quadratic bowl, the smallest theorem there is: replace it by yours."""

from lemmata.study import Study

STUDY = Study(
    id="skeleton",
    title="Gradient descent on a bowl",
    summary="The loss of x on a bowl of curvature h falls as (1 - eta h)^2 a step, so that steps go as 1/eta.",
    citation="""
@misc{cauchy1847,
  title  = {M{\\'e}thode g{\\'e}n{\\'e}rale pour la r{\\'e}solution des syst{\\`e}mes d'{\\'e}quations simultan{\\'e}es},
  author = {Cauchy, Augustin-Louis},
  year   = {1847}
}
""",
    version="Comptes rendus 25, 1847",
    package=__name__,
)

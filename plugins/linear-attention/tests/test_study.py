"""Holds the study against what every study of the lab is held against."""

from lemmata.testing import study_tests

test_study = study_tests("linear-attention")

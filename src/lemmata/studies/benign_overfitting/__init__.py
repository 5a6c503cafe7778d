"""Benign overfitting of a transformer: fitting noise need not hurt, and N SNR^2 says when it does."""

from lemmata.study import Study

STUDY = Study(id="benign-overfitting", title="Benign overfitting of a transformer", summary="", citation="", figures={}, claims={}, package=__name__)

"""What a shell completes, and that bash takes the lines for it."""

import shutil
import subprocess

import pytest

from lemmata.cli import command_parser, main
from lemmata.completion import candidates


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["pre"], ["predict"]),
        (["--v"], ["--version"]),
        (["predict", "gr"], ["graph-transformer", "group-imbalance"]),
        (["run", "benign-overfitting/fig1"], ["benign-overfitting/fig1"]),
        (["check", "multihead/gap-th"], ["multihead/gap-theorem"]),
        (["predict", "benign-overfitting", "--so"], ["--solve"]),
        (["predict", "benign-overfitting", "--format", ""], ["json", "csv", "md"]),
        (["figure", "x", "--venue", "ic"], ["icml", "iclr"]),
        (["complete", "z"], ["zsh"]),
        (["nothing", "x"], []),
    ],
)
def test_words_are_completed(words, found):
    assert candidates(command_parser(), words) == found


def test_bash_completes_with_the_lines_that_the_command_prints(capsys):
    assert main(["complete", "bash"]) == 0
    lines = capsys.readouterr().out
    assert main(["--complete", "pred"]) == 0
    assert capsys.readouterr().out == "predict\n"
    if shutil.which("bash"):
        typed = 'COMP_WORDS=(lemmata pred); COMP_CWORD=1; lemmata() { echo "$2"; }; _lemmata; echo "${COMPREPLY[0]}"'
        said = subprocess.run(["bash", "-c", f"{lines}\n{typed}"], capture_output=True, text=True, check=True)
        assert said.stdout == "pred\n"

"""An empty folder for data sets."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder for data sets that is empty."""
    folder = tmp_path / "home"
    monkeypatch.setenv("LEMMATA_DATA", str(folder))
    return folder

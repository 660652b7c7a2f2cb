"""The tour of instances does what it says: every command in it is run, in order, in one shell, and its output
compared.
"""

from __future__ import annotations

import pytest
from harness import REPOSITORY
from test_replicas_tour import take_tour

pytestmark = pytest.mark.logstead_only


def test_tour(tmp_path):
    commands = take_tour(REPOSITORY / "docs/operations/instances-tour.md", ("5433",), tmp_path)
    assert commands > 15, "the tour has become short: are its blocks still found?"

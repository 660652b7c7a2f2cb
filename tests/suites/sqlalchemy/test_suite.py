"""The tests that SQLAlchemy gives those who write dialects."""

from sqlalchemy.testing.suite import *  # noqa: F401, F403

"""kvlint: a linter for the serving configuration of large language models."""

__version__ = "0.1.0"

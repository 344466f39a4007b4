"""Moved to `kvlint.pipeline`."""

from kvlint.pipeline import *  # noqa: F403
from kvlint.pipeline import Evaluation, Options, check, check_files, evaluate, exceeds, memory_project, report  # noqa: F401

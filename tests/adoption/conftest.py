"""The fixtures of `repository`."""

from repository import *  # noqa: F403

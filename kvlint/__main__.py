"""`python -m kvlint`."""

from kvlint.cli import console

console()

"""Plain fine-tuning: every parameter follows the gradient. What all others are compared with."""

from ftp.lab.methods._base import Method


class FineTune(Method):
    title = "Vanilla FT"
    summary = "Every parameter follows the gradient."


METHOD = FineTune

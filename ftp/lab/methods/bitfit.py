"""BitFit (Zaken et al. 2021): only the biases and the head are trained."""

from ftp.lab.methods._base import Method


class BitFit(Method):
    title = "BitFit"
    summary = "Only the biases and the head are trained."

    def prepare(self) -> None:
        self.train_only(lambda name: name.endswith("bias"))


METHOD = BitFit

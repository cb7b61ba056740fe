"""Linear probe: only the new head is trained; the body stays the pre-trained one, its running statistics too."""

from ftp.lab.methods._base import Method, body_in_eval


class LinearProbe(Method):
    title = "Linear Prob."
    summary = "Only the new head is trained."

    def prepare(self) -> None:
        self.train_only(lambda name: False)

    def before_step(self, step: int) -> None:
        body_in_eval(self.model, self.task.head)


METHOD = LinearProbe

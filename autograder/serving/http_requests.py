"""What can be asked by HTTP. See docs/automation.md."""

from typing import Any

from tornado.web import Application, stream_request_body

from .http_answers import Answering, Door, Refused
from .http_notebooks import Mark, Submission


def application(door: Door) -> Application:
    """Answers requests at one door."""
    routes: list[Any] = [
        (r"/submissions/[^/]+/[^/]+", Submission, {"door": door}),
        (r"/marks", Mark, {"door": door}),
        *([] if door.token else [(r"/ready", _ReadyHere, {"door": door})]),
    ]
    return Application(
        routes, default_handler_class=_Unknown, default_handler_args={"door": door}, log_function=lambda handler: None
    )


@stream_request_body  # of a body that nobody wants nothing is looked at
class _Unknown(Answering):
    def data_received(self, chunk: bytes) -> None:
        """Drops it."""

    def prepare(self) -> None:
        super().prepare()
        raise Refused(404, "There is nothing here. The requests are POST /submissions/UNIT/STUDENT and POST /marks.")


class _ReadyHere(Answering):
    """`autograder mark` asks whether it is marked here as it would mark itself."""

    def get(self) -> None:
        self.refuse_other_terms()
        self.answer(self.door.office.ready)

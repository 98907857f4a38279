"""Requests to what is served in a test: by real HTTP, from a thread, while the test itself serves."""

import contextlib
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from autograder.course import settings
from autograder.gradebook.nbgrader_course import course_directory
from autograder.gradebook.roster import may_be_graded
from autograder.serving.http_server import HttpServer, Intake, fresh_token
from autograder.serving.serve import is_listed
from autograder.serving.served_unit import ServeOptions

from .recorded_class import UNIT

MOST_BYTES = 1_000_000


class Requests:
    """Requests to `serve` on a port. serving: a `Serving`, which works meanwhile."""

    def __init__(self, root, serving, grading_process, *, unlisted=False):
        self.serving = serving
        self._folder = fresh_token(root)
        self._server = HttpServer(0)
        folder, self.token = self._folder.__enter__()
        intake = Intake(
            frozenset({UNIT}),
            may_be_graded(course_directory(root)),
            partial(is_listed, ServeOptions(root, "auto", settings.load(), unlisted=unlisted)),
            MOST_BYTES,
            folder,
            serving.arrivals.put,
            lambda asked: asked.answer(grading_process.grade(asked.name, asked.file.content, digest=asked.file.digest)),
        )
        self._server.start(intake, self.token)
        self.port, self.refuse = self._server.port, self._server.refuse

    def ask(self, path, body=b"", method="POST", **headers):
        """Send a request; return the status and the decoded JSON."""
        asked = {
            "Authorization": f"Bearer {self.token}",
            **{name.replace("_", "-"): its for name, its in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        with contextlib.closing(connection):
            with contextlib.suppress(BrokenPipeError):  # it is answered before it is sent to its end
                connection.request(method, path, body, {name: its for name, its in asked.items() if its is not None})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def put_submission(self, student, content, options="?wait=120"):
        """Submit for a student; by default, wait for the outcome as long as a busy machine takes."""
        return self.ask(f"/submissions/{UNIT}/{student}{options}", content)

    def during(self, *requests):
        """Return the results of requests, each made with this object in its own thread, while this thread serves.

        It begins to once the first one's file is there or the request is answered.
        """
        with ThreadPoolExecutor(len(requests)) as threads:
            self.serving.arrived.clear()
            sent = [threads.submit(partial(request, self)) for request in requests]
            while not self.serving.arrived.is_set() and not sent[0].done():
                time.sleep(0.005)
            while not all(one.done() for one in sent):
                self.serving.work_off()
                time.sleep(0.02)
            self.serving.work_off()
            return [one.result() for one in sent]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.__exit__(*error)
        self._folder.__exit__(None, None, None)

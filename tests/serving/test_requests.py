"""`autograder serve --port`: the answer to a submission has what its student may see, and nobody else gets in."""

import contextlib
import re
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from autograder.course.notebook_file import NotebookFile
from autograder.pool.grading_pool import GradingPool, GradingStopped
from autograder.serving import http_server
from autograder.serving.http_server import FOLDER, TOKEN_FILE
from autograder.serving.work_queue import GradingThreads, UnrecordedNotebook
from tests.processes import wait_until
from tests.recorded_class import UNIT, notebook, put_submission, set_due, wrong
from tests.requests_served import MOST_BYTES, Requests
from tests.served_unit import FIRST, OVERFLOWS, POINTS, RIGHT_ON_EXAMPLES, Serving, attempts, released
from tests.served_unit import submit as submit_by_exchange


@contextlib.contextmanager
def served(root, recorded, **options):
    """Serve a course; yield what serves it, and requests to it."""
    with Serving(root, recorded, **options) as serving, Requests(root, serving, recorded.grading_process) as requests:
        yield serving, requests


def test_the_answer_to_a_submission_has_its_outcome(course, recorded):
    submit_by_exchange(course, "ada", notebook(), FIRST)
    with served(course, recorded, attempts=3) as (serving, requests):
        serving.work_off()
        [(status, answer)] = requests.during(lambda to: to.put_submission("ada", wrong()))
        assert (status, answer["status"], answer["max_score"]) == (200, "marked", 18.0)
        assert answer["score"] < 18
        assert OVERFLOWS in answer["page"]
        assert OVERFLOWS not in released(course, "ada")  # whose secret it is is about the file before
        [(status, again)] = requests.during(lambda to: to.put_submission("ada", wrong()))
        assert (status, again) == (200, answer)
        assert len(attempts(course)) == 2
        first, second = requests.during(
            lambda to: to.put_submission("ada", notebook(why_softmax="1")),
            lambda to: to.put_submission("bo", notebook()),
        )
        assert [first[0], second[0]] == [200, 200]
        [(status, answer)] = requests.during(lambda to: to.put_submission("ada", notebook(why_softmax="2")))
        assert (status, answer["status"], answer["score"], answer["page"]) == (202, "waits", None, "")
        assert datetime.fromisoformat(answer["waits_until"]) > datetime.now(UTC)
        [(status, answer)] = requests.during(lambda to: to.put_submission("ada", notebook(why_softmax="3"), "?wait=0"))
        assert (status, answer["status"]) == (202, "received")
    assert (course / "submitted" / "ada" / UNIT / f"{UNIT}.ipynb").read_bytes() == notebook(why_softmax="3")
    assert not (course / FOLDER).exists()


def test_before_the_due_date_an_answer_has_no_points(course, recorded):
    put_submission(course, "ada", b"no notebook")
    with served(course, recorded, show="check") as (serving, requests):
        serving.work_off()
        set_due(course, datetime.now(UTC) + timedelta(days=1))
        [(status, answer)] = requests.during(lambda to: to.put_submission("ada", wrong()))
        assert (status, answer["status"], answer["score"], answer["max_score"]) == (200, "marked", None, None)
        assert not re.search(POINTS, answer["page"])
        assert RIGHT_ON_EXAMPLES in answer["page"]


def test_a_file_replaced_before_grading_is_answered_as_replaced(course, recorded):
    with served(course, recorded) as (serving, requests):
        with ThreadPoolExecutor() as threads:
            sent = []
            for content in (wrong(), notebook()):
                sent.append(threads.submit(requests.put_submission, "ada", content))
                assert serving.arrived.wait(60)
                serving.arrived.clear()
                serving.arrivals.place()
            serving.work_off()
            answers = [one.result() for one in sent]
        assert [(status, its["status"], its["score"]) for status, its in answers] == [
            (202, "replaced", None), (200, "marked", 18.0),
        ]  # fmt: skip
        assert serving.marked == ["ada"]


def test_refused_requests_change_nothing(course, recorded, caplog):
    (course / "submitted" / "linked").symlink_to(course)
    with (course / "roster.csv").open("a") as roster:
        roster.write("linked,\n")
    with served(course, recorded) as (serving, requests):
        here = f"/submissions/{UNIT}/ada"
        for path, asked, status, said in [
            (here, {"Authorization": None}, 401, ".serving/token"),
            (here, {"Authorization": f"Bearer {requests.token}x"}, 401, ".serving/token"),
            (here, {"Authorization": f"Basic {requests.token}"}, 401, ".serving/token"),
            (here, {"Host": f"attention.example:{requests.port}"}, 403, "127.0.0.1"),
            (here, {"method": "GET"}, 405, "POST"),
            (here, {"body": iter([b"in pieces"])}, 411, "Content-Length"),
            (here, {"Content_Length": str(2 * MOST_BYTES)}, 413, "1 MB"),
            (here, {"Content_Length": "9" * 5000}, 413, "1 MB"),
            (here, {"body": b""}, 400, "is not a notebook"),
            (here, {"body": b"<html>"}, 400, "is not a notebook"),
            (here + "?wait=soon", {}, 400, "wait must be a number"),
            ("/submissions/self_attention/ada", {}, 404, f"There is no unit 'self_attention' here. Served: {UNIT}."),
            *(
                (f"/submissions/{UNIT}/{name}", {}, 400, "cannot be a student's id")
                for name in ("..", ".hidden", "-r", "..%2Fbo", "a%00b", "a%1bb", "x" * 256, "toString")
            ),
            (f"/submissions/{UNIT}/amra", {}, 404, "'amra' is not on the roster. Put this id on it"),
            (f"/submissions/{UNIT}/%ff", {"Authorization": None}, 401, ".serving/token"),
            (f"/submissions/{UNIT}/%ff", {}, 400, "did not understand this request"),
            ("/ready?terms=", {"method": "GET"}, 404, "There is nothing here."),
        ]:
            found = requests.ask(path, **{"body": notebook(), **asked})
            assert (found[0], set(found[1])) == (status, {"error"}), path
            assert said in found[1]["error"]
        [(status, found)] = requests.during(lambda to: to.put_submission("linked", notebook()))
        assert (status, "is a link" in found["error"]) == (507, True)
        serving.work_off()
        assert serving.marked == []
        assert [path.name for path in (course / "submitted").rglob("*")] == ["linked"]
        assert [path.name for path in (course / FOLDER).iterdir()] == [TOKEN_FILE]
    assert caplog.text == ""  # strangers do not write into what is printed


def test_the_roster_is_read_at_each_request(course, recorded):
    roster = course / "roster.csv"
    submit_by_exchange(course, "eve", notebook(), FIRST)
    with served(course, recorded) as (serving, requests):
        serving.work_off()  # by then she is in the gradebook
        assert requests.put_submission("eve", notebook())[0] == 404
        roster.write_text(f"{roster.read_text()}eve,Eve\n")
        assert requests.during(lambda to: to.put_submission("eve", notebook(), "?wait=0"))[0][0] == 202
        roster.write_text("name,colour\nada,red\n")
        status, answer = requests.put_submission("ada", notebook())
        assert (status, "roster.csv" in answer["error"]) == (503, True)
        roster.unlink()  # who is in the gradebook is in the class then
        assert requests.put_submission("stranger", notebook())[0] == 404
        assert requests.during(lambda to: to.put_submission("eve", notebook(), "?wait=0"))[0][0] == 202
    with (
        Serving(course, recorded) as serving,
        Requests(course, serving, recorded.grading_process, unlisted=True) as requests,
    ):
        assert requests.during(lambda to: to.put_submission("stranger", notebook(), "?wait=0"))[0][0] == 202


def test_requests_while_serving_ends_are_refused_with_the_reason(course, recorded, caplog):
    with Serving(course, recorded) as serving, ThreadPoolExecutor() as threads:
        with Requests(course, serving, recorded.grading_process) as requests:
            sent = threads.submit(requests.put_submission, "ada", notebook())
            assert serving.arrived.wait(60)
            requests.refuse()
            refused = requests.put_submission("bo", notebook())
        status, answer = sent.result()  # it was cut off
        assert (status, refused) == (503, (503, answer))
        assert "is ending" in answer["error"]
        assert not list((course / "submitted").iterdir())


def test_a_full_disk_is_answered_with_an_error_message(course, recorded, caplog):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with served(course, recorded) as (_, requests):
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
        try:
            status, answer = requests.put_submission("ada", notebook())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (status, "could not be written" in answer["error"]) == (507, True)
    assert caplog.text == ""


def test_slow_clients_are_dropped_and_stop_nobody(course, recorded, monkeypatch):
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(http_server, "MOST_UNKNOWN", 8)
    with Serving(course, recorded) as serving:
        with Requests(course, serving, recorded.grading_process) as requests:
            slow = [connected(requests, "POST /marks HTTP/1.1\r\n") for _ in range(12)]
            assert requests.ask("/nothing")[0] == 404
            with contextlib.suppress(ConnectionResetError):
                assert slow[0].recv(1) == b""  # it has waited longest
            begun = f"POST /marks HTTP/1.1\r\nHost: localhost:{requests.port}\r\nAuthorization: Bearer {requests.token}"
            end = time.monotonic() + 30
            while len(list((course / FOLDER).iterdir())) < len([TOKEN_FILE]) + 4:  # refused while one still goes
                assert time.monotonic() < end
                slow.append(connected(requests, f"{begun}\r\nContent-Length: 9\r\n\r\nhalf"))
                time.sleep(0.1)
            error = "There are too many requests at once. Send this one again later."
            assert requests.ask("/nothing") == (503, {"error": error})
            for one in slow:
                one.close()
        monkeypatch.setattr(http_server, "HEADER_SECONDS", 1)
        monkeypatch.setattr(http_server, "BODY_SECONDS", 1)
        with Requests(course, serving, recorded.grading_process) as requests:
            begun = f"POST /marks HTTP/1.1\r\nHost: localhost:{requests.port}\r\n"
            for slow in (begun, f"{begun}Authorization: Bearer {requests.token}\r\nContent-Length: 9\r\n\r\nhalf"):
                with connected(requests, slow) as one, contextlib.suppress(ConnectionResetError):
                    while one.recv(1000):
                        pass
            wait_until(lambda: len(list((course / FOLDER).iterdir())) == len([TOKEN_FILE]))  # half of a notebook


def connected(requests, beginning):
    """A connection that has sent the beginning of a request."""
    opened = socket.create_connection(("127.0.0.1", requests.port))
    opened.sendall(beginning.encode())
    return opened


def test_unrecorded_notebooks_that_wait_at_the_end_are_answered():
    begun, ended, answers = threading.Event(), threading.Event(), []

    class Hanging:
        """A process that grades until it is closed."""

        is_running = ready = True

        def report(self, request):
            begun.set()
            ended.wait()
            raise GradingStopped

        def close(self):
            ended.set()

    pool = GradingPool(lambda number: Hanging())
    threads = GradingThreads(pool, None, [], lambda: None, print)
    asked = [UnrecordedNotebook(str(number), NotebookFile(b""), answers.append, lambda: True) for number in range(3)]
    for one in asked[:2]:
        threads.put_unrecorded(one)
    assert begun.wait(60)
    pool.close()
    threads.put_unrecorded(asked[2])
    assert sorted(answers) == [str(GradingStopped()), *["This `autograder serve` is ending."] * 2]

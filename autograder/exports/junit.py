"""JUnit XML, which CI systems show: a test suite for each notebook, a test case for each grader."""

from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..notebook import printable_lines
from ..report import ExerciseReport, Report, TestReport
from . import told

_PROPERTIES = ("status", "score", "max_score", "isolation", "device", "version", "kit", "torch", "submission")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit(reports: Iterable[Report]) -> bytes:
    """The file's content. Every character in it is printable, which XML demands of most."""
    suites = [_suite(report) for report in reports]
    root = Element("testsuites", name="autograder")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.attrib[name]) for suite in suites)))
    root.extend(suites)
    indent(root)
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(report: Report) -> Element:
    cases = list(_cases(report))
    outcomes = Counter(outcome.tag for case in cases for outcome in case)
    suite = Element("testsuite", name=printable_lines(report.notebook), tests=str(len(cases)))
    for tag, name in _COUNTED.items():
        suite.set(name, str(outcomes[tag]))
    properties = SubElement(suite, "properties")
    for name in _PROPERTIES:
        SubElement(properties, "property", name=name, value=printable_lines(str(getattr(report, name))))
    suite.extend(cases)
    if report.message:
        SubElement(suite, "system-out").text = printable_lines(report.message)
    return suite


def _cases(report: Report) -> Iterator[Element]:
    unit = report.unit or "notebook"
    if not report.exercises:
        yield _case(unit, "notebook", "failure" if report.is_result else "error", report.status, report.message)
    for exercise in report.exercises:
        yield from _of_exercise(f"{unit}.{exercise.name}", exercise)
    for question in report.written:
        yield _case(unit, question.name, "skipped", question.status, told.of_written(question))


def _of_exercise(place: str, exercise: ExerciseReport) -> Iterator[Element]:
    """A case for each grader; what is said of the exercise as a whole stands with the first that is not right."""
    said = told.of_exercise(exercise)
    if not exercise.tests:
        yield _case(place, exercise.name, "error", exercise.status, said)
    for test in exercise.tests:
        tag = _tag(test)
        yield _case(place, test.name, tag, test.outcome, test.message, said if tag in ("failure", "error") else "")
        said = "" if tag in ("failure", "error") else said


def _tag(test: TestReport) -> str:
    """The element for an outcome; a failure that costs nothing is shown without making a pipeline fail."""
    if test.outcome == "grader_error":
        return "error"
    if test.outcome == "passed":
        return ""
    return "failure" if test.max_points else "skipped"


def _case(place: str, name: str, tag: str, kind: str, message: str, beside: str = "") -> Element:
    case = Element("testcase", classname=place, name=name)
    if tag:
        first, _, rest = printable_lines(message).partition("\n")
        outcome = SubElement(case, tag, type=kind, message=first)
        outcome.text = "\n".join(filter(None, (first, rest, beside)))
    return case

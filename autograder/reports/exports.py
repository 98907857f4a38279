"""Reports for other programs: JSON lines and their schema, JUnit XML for CI systems, results.json for Gradescope."""

import ast
import inspect
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from ..course.notebook import printable_lines
from ..report import ExerciseReport, Report, TestReport, WrittenQuestion

Visibility = Literal["visible", "hidden", "after_due_date", "after_published"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_JUNIT_PROPERTIES = (
    "status", "score", "max_score", "isolation", "device", "version", "kit", "torch", "submission",
)  # fmt: skip
_GRADESCOPE_DATA = ("status", "isolation", "version", "kit", "submission")
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_WRITTEN = {
    "answered": "It is answered, and a person grades it.",
    "unanswered": "It is not answered.",
    "missing": "Its cell is not in the notebook.",
}


def json_line(value: Any) -> bytes:
    """Return a value as one JSON object on a line of ASCII, with every other character escaped as its number."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode() + b"\n"


def json_schema(type_: type[msgspec.Struct]) -> bytes:
    """Return the JSON Schema of a type as the autograder writes it: every field is required.

    Fields are described by the docstrings below them. All types that the schema names are from the type's own module.
    """
    schema = msgspec.json.schema(type_)
    source = ast.parse(inspect.getsource(inspect.getmodule(type_)))  # type: ignore[arg-type]
    classes = {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}
    for name, definition in schema["$defs"].items():
        properties = definition["properties"]
        definition["required"] = list(properties)
        for field in properties.values():
            field.pop("default", None)
        for statement, below in pairwise(classes[name].body):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(docstring))):
                    properties[field]["description"] = inspect.cleandoc(docstring).replace("\n", " ")
    return msgspec.json.format(msgspec.json.encode({"$schema": _DIALECT, **schema}), indent=2) + b"\n"


def _exercise_text(exercise: ExerciseReport) -> str:
    """Return the messages on an exercise as a whole, as plain lines: its own, the mistakes', the fault's location."""
    location = exercise.whereabouts.told if exercise.whereabouts else ""
    lines = [exercise.message, exercise.note, *exercise.mistake_messages, location]
    return printable_lines("\n".join(filter(None, lines)))


def _question_text(question: WrittenQuestion) -> str:
    place = f" It was found in {question.found_in}." if question.found_in else ""
    return f"A written question for {question.max_score:g} points. {_WRITTEN[question.status]}{place}"


def gradescope_results(report: Report, hidden: Visibility) -> bytes:
    """Return Gradescope's results.json: the score, and an entry for each exercise, whose text lists the hidden tests.

    hidden: who sees these entries. If not everybody does, the public tests of each exercise have a visible entry
    without points. There is no score if the file could not be read, or if a test failed through a fault of the
    autograder: then Gradescope reports a failed run instead of 0 points.
    """
    written = [f"{question.name}: {_question_text(question)}" for question in report.written]
    text = "\n".join(filter(None, [report.message, *written]))
    results: dict[str, Any] = {
        "output": printable_lines(text),
        "output_format": "text",
        "visibility": "visible",
        "tests": [entry for exercise in report.exercises for entry in _entries(exercise, hidden)],
        "extra_data": {name: getattr(report, name) for name in _GRADESCOPE_DATA},
        "score": report.score,
    }
    if not report.is_result:
        results["tests"] = []
        del results["score"]
    return msgspec.json.format(msgspec.json.encode(results)) + b"\n"


def _entries(exercise: ExerciseReport, hidden: Visibility) -> Iterator[dict[str, Any]]:
    def entry(name: str, tests: Iterable[TestReport], *texts: str, **fields: Any) -> dict[str, Any]:
        by_points_lost = sorted(tests, key=lambda test: test.points - test.max_points)
        text = "\n".join(filter(None, [*texts, *map(_test_text, by_points_lost)]))
        return {"name": name, "output": text, "output_format": "text", **fields}

    yield entry(
        exercise.name,
        exercise.tests,
        _exercise_text(exercise),
        visibility=hidden,
        score=round(exercise.score, 2),
        max_score=round(exercise.max_score, 2),
        status="passed" if exercise.score == exercise.max_score else "failed",
    )
    public = [test for test in exercise.tests if test.public]
    if public and hidden != "visible":
        yield entry(f"{exercise.name}: public tests", public, visibility="visible")


def _test_text(test: TestReport) -> str:
    outcome = {"passed": "passed", "withheld": "passed, without points"}.get(test.outcome, "FAILED")
    points = f" ({round(test.points, 2):g} of {round(test.max_points, 2):g} points)" if test.max_points else ""
    name = test.name.removeprefix("test_").replace("_", " ")
    return printable_lines("\n".join(filter(None, [f"{outcome}  {name}{points}", test.message])))


def junit_xml(reports: Iterable[Report]) -> bytes:
    """Return JUnit XML: a test suite for each notebook, a test case for each hidden test.

    All characters are printable, because XML forbids most others.
    """
    suites = [_suite(report) for report in reports]
    totals = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors")}
    root = Element("testsuites", {"name": "autograder", **totals})
    root.extend(suites)
    indent(root)
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(report: Report) -> Element:
    cases = list(_cases(report))
    outcomes = Counter(outcome.tag for case in cases for outcome in case)
    counts = {name: str(outcomes[tag]) for tag, name in _COUNTS.items()}
    suite = Element("testsuite", {"name": printable_lines(report.notebook), "tests": str(len(cases)), **counts})
    properties = SubElement(suite, "properties")
    for name in _JUNIT_PROPERTIES:
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
        yield from _exercise_cases(f"{unit}.{exercise.name}", exercise)
    for question in report.written:
        yield _case(unit, question.name, "skipped", question.status, _question_text(question))


def _exercise_cases(place: str, exercise: ExerciseReport) -> Iterator[Element]:
    """Yield a case for each hidden test; the first that is not right has the messages on the whole exercise too."""
    text = _exercise_text(exercise)
    if not exercise.tests:
        yield _case(place, exercise.name, "error", exercise.status, text)
    for test in exercise.tests:
        tag = _tag(test)
        is_wrong = tag in ("failure", "error")
        yield _case(place, test.name, tag, test.outcome, test.message, text if is_wrong else "")
        text = "" if is_wrong else text


def _tag(test: TestReport) -> str:
    """Return the XML element for a test's outcome; a failure that costs no points does not make a pipeline fail."""
    if test.outcome == "grader_error":
        return "error"
    if test.outcome == "passed":
        return ""
    return "failure" if test.max_points else "skipped"


def _case(place: str, name: str, tag: str, kind: str, message: str, exercise_text: str = "") -> Element:
    case = Element("testcase", classname=place, name=name)
    if tag:
        first, _, rest = printable_lines(message).partition("\n")
        outcome = SubElement(case, tag, type=kind, message=first)
        outcome.text = "\n".join(filter(None, (first, rest, exercise_text)))
    return case

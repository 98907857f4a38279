"""The student check in a folder of a student's own: a module, a zip with its code, and the data of units."""

import inspect
import json
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections import Counter

import pytest

from autograder import catalogue, course
from autograder.build import release_files
from autograder.student_check.unit_data import (
    EXAMPLES,
    FORMAT,
    UnreadableUnit,
    data_file,
    data_of,
    read_data,
    read_unit,
    zip_file,
)
from tests import CHECK, RELEASE, REPOSITORY, forked_python

UNIT, EXERCISE = "dot_product_attention", "softmax"
OTHER, OF_OTHER = "self_attention", "scaled_softmax"
ZIP = zip_file(CHECK)
WRONG = "def softmax(scores, dim=-1):\n    return scores.exp() / scores.exp().sum()\n"
IMPORTS = f"import torch\nfrom {CHECK} import buggy, check, draw, example, guess, hint, show\n"


@pytest.fixture
def folder(tmp_path):
    """A student's copy of a released folder."""
    return shutil.copytree(RELEASE / UNIT, tmp_path / "homework")


def run(folder, code):
    """Run code in a Python that has the folder on its path, and neither this repository nor the environment."""
    return forked_python.run(textwrap.dedent(code), folder)


def printed(folder, code):
    """Return what the code prints after the notebook's imports; it must not fail."""
    done = run(folder, IMPORTS + textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def solution(unit, exercise):
    return catalogue.solutions(unit)[exercise].source()


def test_a_folder_holds_few_files_and_every_unit_has_the_same_check():
    for unit in course.unit_names():
        assert {path.name for path in (RELEASE / unit).iterdir() if path.is_file()} == {
            f"{unit}.ipynb",
            f"{CHECK}.py",
            ZIP,
            data_file(unit),
            "README.md",
            "requirements.txt",
            "AGENTS.md",
        }
        assert (RELEASE / unit / f"{CHECK}.py").read_bytes() == release_files.facade()
        assert (RELEASE / unit / ZIP).read_bytes() == release_files.zipped_modules(), "run `autograder build`"


def test_the_zip_holds_the_modules_as_they_are_stored_with_a_fixed_date():
    with zipfile.ZipFile(RELEASE / UNIT / ZIP) as archive:
        entries = archive.infolist()
        assert [one.filename for one in entries] == sorted(one.filename for one in entries)
        for one in entries:
            assert (one.compress_type, one.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
            assert archive.read(one) == (REPOSITORY / one.filename).read_bytes()
    names = {one.filename for one in entries}
    assert {
        "autograder/__init__.py",
        "autograder/student_check/__init__.py",
        "autograder/student_check/check.py",
    } <= names
    assert not any(name.split("/")[1] in (*course.content.OF_EACH_UNIT, "build", "marking") for name in names)


def test_the_check_judges_a_right_and_a_wrong_answer_without_the_kit(folder):
    right = solution(UNIT, EXERCISE)
    call = f"print(check({EXERCISE!r}))"
    said = printed(folder, f"{right}\n{call}\n{WRONG}\n{call}\nprint(sys.modules.keys())")
    worth = course.unit(UNIT).exercise(EXERCISE).points
    assert f"{EXERCISE} passes on the public examples: {worth:g} of {worth:g} points." in said
    assert f"{EXERCISE} is not right yet: " in said
    assert "'autograder'" not in said
    assert "No module" not in said


def test_the_check_needs_only_torch_and_the_standard_library(folder):
    code = f"""
        import sys
        sys.path.insert(0, {str(folder)!r})
        class Rest:
            def find_spec(self, name, path=None, target=None):
                if name in ("numpy", "IPython", "matplotlib", "autograder", "nbformat", "msgspec"):
                    raise ModuleNotFoundError(name, name=name)
        sys.meta_path.insert(0, Rest())
        import warnings
        warnings.simplefilter("ignore")  # torch's, about numpy
        {IMPORTS.replace(chr(10), "; ")}
        print(hint("softmax"))
        check("softmax", repair=True)  # imports the search, too
    """
    command = [sys.executable, "-I", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Hint for `softmax`, 1 of 3")


@pytest.mark.parametrize("name", [ZIP, f"{CHECK}.py"])
def test_a_file_replaced_under_a_running_kernel_is_said_to_need_a_restart(folder, name):
    code = f"""
        from pathlib import Path
        exec({WRONG!r})
        print(check("softmax"))
        path = Path({name!r})
        before = path.read_bytes()
        path.write_bytes(b"no zip" if path.suffix == ".zip" else before + b"# newer")
        print(check("softmax"), check(), example("softmax"), buggy("softmax"))
        path.unlink()
        print(check("softmax"))
        path.write_bytes(before)
        print(check("softmax"))
    """
    first, *replaced, last = printed(folder, code).split(f"The files of {CHECK}.py have changed since")
    assert len(replaced) == 4
    assert "None None None None" in replaced[-1]
    assert "restart the kernel.\nNone\n" in last
    assert first.strip().splitlines()[-1] == last.strip().splitlines()[-1]
    assert "softmax is not right yet: " in first
    assert "softmax is not right yet: " in last


def test_the_unpacked_zip_in_a_folder_does_as_well(folder, tmp_path):
    code = f"{WRONG}\nprint(check('softmax', more=True))\nimport inspect\nprint(inspect.getfile(show))"
    *packed, _ = printed(folder, code).splitlines()
    for number, into in enumerate((f"{CHECK}_modules", CHECK, ".")):
        copy = shutil.copytree(folder, tmp_path / str(number))
        with zipfile.ZipFile(copy / ZIP) as archive:
            archive.extractall(copy / into)
        (copy / ZIP).unlink()
        *unpacked, file = printed(copy, code).splitlines()
        assert unpacked == packed
        assert file.startswith(str(copy / into))


DAMAGED = {
    "missing": (lambda path: path.unlink(), "is missing"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "is damaged (File is not a zip file)"),
    "a page": (lambda path: path.write_text("<html>Sign in</html>"), "is damaged (File is not a zip file)"),
    "changed": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"def ", b"dEf ", 1)),
        "is damaged (Bad CRC-32",
    ),
    "empty": (lambda path: zipfile.ZipFile(path, "w").close(), 'is damaged ("There is no item named'),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_missing_or_damaged_zip_is_named_with_what_to_do(folder, kind):
    damage, said = DAMAGED[kind]
    damage(folder / ZIP)
    done = run(folder, f"from {CHECK} import check")
    error = done.stderr.splitlines()[-1]
    assert error.startswith(f"ImportError: {ZIP} {said}")
    assert "Fetch the assignment's files again" in error
    assert f"looked for {folder / ZIP}" in error
    assert f"The working directory is {folder}." in error


def test_missing_and_damaged_data_are_named_with_what_to_do(folder):
    data = folder / data_file(UNIT)
    kept = data.read_bytes()
    data.write_bytes(kept[:1000])
    assert printed(folder, "check('softmax')").startswith(f"{data.name} is damaged (")
    data.unlink()
    calls = ("check()", "check('softmax')", "example('softmax')", "hint()", "guess('x', 1)", "buggy('softmax')")
    for said in printed(folder, "\nprint('==')\n".join(calls)).split("==\n"):
        assert said.startswith("No data file of a unit (a name that ends in .json.gz) is in")
        assert said.endswith("fetch the assignment's files again.\n")
    content = read_data(RELEASE / UNIT / data.name)
    data.with_suffix("").write_text(json.dumps(content))  # as a browser may save it
    (folder / "notes.json").write_text('{"format": 3}')  # the student's own
    (folder / "more.json").write_text("{")
    (folder / "public_examples.json.gz").write_bytes(data_of({"softmax": {}}))  # of an older release
    assert "softmax is not right yet: " in printed(folder, f"{WRONG}\ncheck('softmax')")


def test_data_in_a_newer_format_are_said_to_be(folder, tmp_path):
    data = folder / data_file(UNIT)
    content = read_data(data)
    assert content["format"] == FORMAT
    data.write_bytes(data_of({**content, "format": FORMAT + 1}))
    said = printed(folder, "check('softmax')")
    assert said.startswith(f"{data.name} has the data of unit {UNIT} in format {FORMAT + 1}, and")
    assert f"reads formats up to {FORMAT}" in said
    data.write_bytes(data_of({**content, "format": "x"}))
    with pytest.raises(UnreadableUnit, match="in format x"):
        read_unit(data)


def test_units_may_share_a_folder(folder):
    shutil.copy(RELEASE / OTHER / data_file(OTHER), folder)
    shutil.copy(RELEASE / OTHER / data_file(OTHER), folder / f"{OTHER} (1).json.gz")
    own, others = (list(course.unit(unit).exercises) for unit in (UNIT, OTHER))
    said = printed(
        folder,
        f"""
        check()
        print("==")
        exec({solution(UNIT, EXERCISE)!r})
        check()
        print(check({EXERCISE!r}))
        hint()
        print("==")
        exec({solution(OTHER, OF_OTHER)!r})
        exec({solution(OTHER, "attention_scores")!r})
        check()
        print(check({OF_OTHER!r}))
        hint()
        check("nothing")
        guess("most_alike", 4)
        """,
    )
    both, first, second = said.split("==\n")
    assert f"of {len(own) + len(others)} exercises pass" in both
    assert f"1 of {len(own)} exercises pass" in first
    assert f"`{EXERCISE}`: 0 of 3" in first
    assert OF_OTHER not in first
    assert f"2 of {len(others)} exercises pass" in second
    assert f"{OF_OTHER} passes on the public examples: " in second
    assert f"`{OF_OTHER}`: 0 of 3" in second
    assert second.partition("The exercises are: ")[2].partition(".\n")[0] == ", ".join(one.name for one in others)
    assert "Yes." in second


def test_one_process_may_use_the_checks_of_two_folders(folder, tmp_path):
    other = shutil.copytree(RELEASE / OTHER, tmp_path / "other")
    said = printed(
        folder,
        f"""
        first = check
        del sys.modules[{CHECK!r}]
        sys.path.insert(0, {str(other)!r})
        from {CHECK} import check
        first("nothing")
        check("nothing")
        """,
    )
    assert EXERCISE in said
    assert OF_OTHER in said


def test_names_of_exercises_are_those_of_one_unit():
    names = Counter(exercise.name for unit in course.unit_names() for exercise in course.unit(unit).exercises)
    assert [name for name, many in names.items() if many > 1] == []


def test_its_source_is_shown(folder):
    said = printed(
        folder,
        """
        import inspect, traceback
        print(inspect.getsource(check))
        ours = [one for name, one in sys.modules.items() if "_modules_" in name]
        print(len(ours), {type(one.__loader__).__name__ for one in ours})
        try:
            draw({}, [])
        except ZeroDivisionError:
            traceback.print_exc(file=sys.stdout)
        print(inspect.getdoc(check))
        """,
    )
    from autograder.student_check.check import StudentCheck

    assert inspect.getsource(StudentCheck.check) in said
    later = {"repair", "own_code_questions", "repair_operators", "definitions"}
    at_once = [path for path in release_files.modules() if path.stem not in later]
    assert f"{len(at_once) - 1} {{'StudentCheckLoader'}}" in said  # not Python's own zipimporter
    assert f'File "{folder / ZIP}{os.sep}autograder' in said
    assert "side = min(4.1, _WIDEST / len(pictures))" in said
    assert "Without a name: shows how far you are in the whole notebook." in said


def test_a_module_is_found_under_another_name_too(folder):
    """A course names its check itself; nothing in the files knows the name."""
    for suffix in (".py", ".zip"):
        (folder / CHECK).with_suffix(suffix).rename((folder / "layers_check").with_suffix(suffix))
    done = run(folder, f"import torch\nfrom layers_check import check\n{WRONG}\nprint(check('softmax', more=True))")
    assert "`example` comes with `from layers_check import example`." in done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    assert CHECK not in done.stdout
    assert CHECK.encode() not in release_files.facade() + release_files.zipped_modules()


def test_the_data_are_those_of_the_unit():
    for unit in course.unit_names():
        content = read_unit(RELEASE / unit / data_file(unit))
        assert (content["unit"], content["format"]) == (unit, FORMAT)
        exercises = {exercise.name for exercise in course.unit(unit).exercises}
        assert exercises <= content[EXAMPLES].keys()

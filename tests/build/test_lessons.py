"""Guesses and hints: their texts, their file, and notebooks with an older or a newer check."""

import re
import textwrap

import msgspec
import nbformat
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.build import release_files
from autograder.build.release_files import readme, single_file
from autograder.build.source_notebook import BuildError, guarded, source_notebook
from autograder.classroom.class_folder import new_course
from autograder.course.cells import filled_in
from autograder.course.settings import load
from autograder.student_check import notebook_functions
from autograder.student_check.notebook_functions import NOT_GUESSED, answer_guess, required_kind
from autograder.student_check.unit_data import data_file, zip_file
from tests import CHECK, RELEASE
from tests.typed import solution_sources, stored

UNIT = "dot_product_attention"
GUESSES = {
    name: {"answer": answer, "because": f"Because of {name}.", "instead": []}
    for name, answer in {
        "count": 4,
        "large": 1024,
        "share": 0.25,
        "about": 1500.0,
        "does": True,
        "does_not": False,
        "word": "journey",
        "shape": [6, 3],
    }.items()
}
GUESSES["count"]["instead"] = [[6, "Not all of them."]]
GUESSES["shape"]["instead"] = [[[3, 6], "The other way round."]]


class Strange:
    """A value that raises in every method that inspects it."""

    def _raise(self, *args):
        raise RuntimeError

    __eq__ = __len__ = __bool__ = __iter__ = __float__ = __getattr__ = __repr__ = __str__ = _raise
    __hash__ = None


class StrangeNumber(float):
    def __float__(self):
        raise RuntimeError

    is_integer = __abs__ = __sub__ = __rsub__ = __float__


RIGHT = [
    *(("count", one) for one in (4, 4.0, "4", torch.tensor(4), torch.tensor([4.0], requires_grad=True), np.int64(4))),
    *(("share", one) for one in (0.25, 0.2524, 0.2452, np.float32(0.25), torch.tensor(0.25), "0.25")),
    *(("about", one) for one in (1500, 1490, 1514.9)),
    *(("large", one) for one in (1024, 1024.0, torch.tensor(1024))),
    *(("does", one) for one in (True, "Yes", " yes. ", np.bool_(True), torch.tensor(True), "TRUE")),
    *(("does_not", one) for one in (False, "No", "n", torch.tensor([False]))),
    *(("word", one) for one in ("journey", " Journey. ", '"journey"', np.str_("journey"))),
    *(("shape", one) for one in ([6, 3], (6, 3), torch.zeros(6, 3).shape, torch.tensor([6, 3]), np.array([6.0, 3]))),
    ("shape", [torch.tensor(6), np.int32(3)]),
]
WRONG = [
    *(("count", one) for one in (3, 5, -4, float("nan"), float("inf"), 10**400)),
    *(("large", one) for one in (1025, 1023, 1020)),
    *(("share", one) for one in (0.256, 0.244, 25)),
    *(("about", one) for one in (1484, 1516)),
    *(("does", one) for one in (False, "no")),
    *(("does_not", one) for one in (True, "yes")),
    *(("word", one) for one in ("step", "")),
    *(("shape", one) for one in ([3, 3], (6,), (6, 3, 1), [])),
]
OF_ANOTHER_KIND = [
    *(("count", one) for one in (None, "four", True, [4, 4], {4}, 4j, Strange(), StrangeNumber(4), print)),
    *(("does", one) for one in (1, 0, None, "perhaps", 1.0, Strange())),
    *(("word", one) for one in (4, None, ["journey"] * 2, b"journey", Strange())),
    *(("shape", one) for one in (6, "6, 3", [[6, 3]], torch.zeros(1, 2), [6, "3"], [True, 3], {6: 3}, Strange())),
    *(("shape", one) for one in (torch.empty(2, device="meta"), range(10**9), torch.zeros(2000), [Strange(), 3])),
]


def numbered(cases):
    """With ids of their own: some values raise where pytest looks for a name."""
    return [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(cases)]


@pytest.mark.parametrize(("name", "value"), numbered(RIGHT))
def test_a_right_guess_is_told_so_and_why(name, value):
    assert answer_guess(GUESSES, name, value) == ("Yes.", GUESSES[name]["because"])


@pytest.mark.parametrize(("name", "value"), numbered(WRONG))
def test_another_guess_is_told_what_is_right(name, value):
    assert answer_guess(GUESSES, name, value) == ("Not quite.", GUESSES[name]["because"])


def test_a_word_that_is_no_choice_is_not_judged():
    guesses = {"reversing": {"answer": "anti-diagonal", "because": "So.", "instead": [("the diagonal", "No.")]}}
    for value in ("Antidiagonal", "anti diagonal."):
        assert answer_guess(guesses, "reversing", value) == ("Yes.", "So.")
    assert answer_guess(guesses, "reversing", "diagonal") == ("Not quite.", "No.")
    title, said = answer_guess(guesses, "reversing", "banana")
    assert (title, said) == ("", 'The answers to choose from are `"anti-diagonal"`, `"the diagonal"`.')


@pytest.mark.parametrize(("name", "value"), numbered(OF_ANOTHER_KIND))
def test_a_guess_of_another_kind_is_told_which_is_wanted(name, value):
    assert answer_guess(GUESSES, name, value) == ("", required_kind(GUESSES[name]["answer"]))


def test_one_particular_wrong_guess_has_a_sentence_of_its_own():
    assert answer_guess(GUESSES, "count", 6) == ("Not quite.", "Not all of them.")
    assert answer_guess(GUESSES, "shape", torch.Size([3, 6])) == ("Not quite.", "The other way round.")


@pytest.mark.parametrize("name", GUESSES)
@pytest.mark.parametrize("value", [..., [...], [..., ...]])
def test_as_released_it_says_what_to_do(name, value):
    assert answer_guess(GUESSES, name, value) == ("", NOT_GUESSED)


def test_a_name_that_is_none_is_told_which_there_are():
    for name in ("cuont", "", 4, None, ["count"], Strange()):
        _, said = answer_guess(GUESSES, name, 4)
        assert said.startswith("This notebook has these guesses: `count`, `large`")
        assert answer_guess({}, name, 4) == ("", "This notebook has no guesses.")


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.complex_numbers() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)


@given(st.sampled_from([*GUESSES]), _anything)
def test_no_value_is_an_exception(name, value):
    first, why = answer_guess(GUESSES, name, value)
    assert first in ("Yes.", "Not quite.", "")
    assert why


def test_hints_come_one_at_a_time_and_then_say_what_else_to_do():
    """The module counts the hints of a process, so no other test may use these exercises' names."""
    held = {"hinted": ["What?", "Shapes.", "Look up exp."], "hinted_later": ["a", "b", "c"]}
    said = [notebook_functions.next_hint(held, "hinted") for _ in range(5)]
    assert said[:3] == [
        ("Hint for `hinted`, 1 of 3", ["1. What?"]),
        ("Hints for `hinted`, 2 of 3", ["1. What?", "2. Shapes."]),
        ("Hints for `hinted`, 3 of 3", ["1. What?", "2. Shapes.", "3. Look up exp."]),
    ]
    assert said[3] == said[4]
    assert said[3][1][:3] == said[2][1]
    assert said[3][1][3].startswith("There are no more hints.")
    assert 'check("hinted")' in said[3][1][3]
    assert notebook_functions.next_hint(held, "hinted_later")[1] == ["1. a"]
    assert notebook_functions.hint_overview(held)[1] == ["`hinted`: 3 of 3", "`hinted_later`: 1 of 3"]
    for name in ("hintd", 3, None, [], Strange()):
        assert notebook_functions.next_hint(held, name) == (
            "",
            ["There are hints for these exercises: `hinted`, `hinted_later`."],
        )
    assert notebook_functions.next_hint({}, "hinted") == ("", ["This notebook has no hints."])
    assert notebook_functions.hint_overview({}) == ("This notebook has no hints.", [])


SOLUTIONS = '''
def double(x):
    """Double."""
    return 2 * x
'''
STORED = stored("lesson")
CELLS = STORED["cells"]
FILE = STORED["file"]


@pytest.fixture
def unit(tmp_path):
    """A unit of its own: `unit(file, cells)` gives what is released of its guesses and hints, and its notebook."""

    def unit(file=FILE, cells=CELLS):
        text, solutions = tmp_path / "unit.py", tmp_path / "answers.py"
        text.write_text(cells)
        solutions.write_text(SOLUTIONS)
        if file is not None:
            text.with_suffix(".yaml").write_text(file)
        lesson = release_files.lesson(text)
        notebook = source_notebook(text, solutions, load(), with_hints=lesson is not None)
        release_files.reject_unmatched(text, lesson, notebook)
        return lesson, notebook

    return unit


def test_what_is_written_is_what_is_released(unit):
    lesson, notebook = unit()
    assert lesson == {
        "guesses": {
            "how_many": {"answer": 4, "because": "Two and two.", "instead": [(6, "One too many, twice.")]},
        },
        "hints": {"double": ["What is twice 3?", "The shape stays.", "Look up `*`."]},
    }
    cells = {cell.id: cell.source for cell in notebook.cells}
    assert "from attention_check import check, guess, hint\n" in cells["setup"]
    assert 'hint("double")' in cells["test_double"]
    assert "guesses and hints |" in readme("unit", notebook, load(), with_lesson=True)
    fetching = source_notebook_at("https://somewhere/files", unit)
    assert (
        fetching.index('"unit.json.gz"')
        < fetching.index('"attention_check.zip"')
        < fetching.index('"attention_check.py"')
    )


def source_notebook_at(address, unit):
    """The set-up cell of a course that fetches its files."""
    theirs = msgspec.structs.replace(load(), files_at=address)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "load", lambda: theirs)
        _, notebook = unit()
    return next(cell.source for cell in notebook.cells if cell.id == "setup")


def test_a_unit_without_the_file_has_neither(unit):
    lesson, notebook = unit(None, CELLS.replace('guess("how_many", ...)', "1 + 1"))
    assert lesson is None
    assert "guess" not in "".join(cell.source for cell in notebook.cells)
    assert "hint" not in "".join(cell.source for cell in notebook.cells)
    assert "guesses" not in readme("unit", notebook, load(), with_lesson=False)


def test_what_the_notebook_does_not_use_is_not_imported(unit):
    _, notebook = unit(re.sub(r"guesses:.*(?=hints:)", "", FILE, flags=re.S), CELLS.replace("guess(", "print("))
    (set_up,) = (cell.source for cell in notebook.cells if cell.id == "setup")
    assert "import check, hint\n" in set_up
    assert "guess" not in set_up


OF_A_LIST = FILE.replace("answer: 4", "answer: [6, 3]").replace("      6:", '      "[3, 6]":')


def test_a_list_has_lists_in_place_of_it(unit):
    lesson, _ = unit(OF_A_LIST)
    assert lesson["guesses"]["how_many"]["instead"] == [([3, 6], "One too many, twice.")]


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (FILE.replace("because", "becuase"), "guess `how_many`: Object contains unknown field `becuase`"),
        (FILE.replace("guesses:", "gueses:"), "unit.yaml: Object contains unknown field `gueses`"),
        (FILE.replace("answer: 4", "answer: {a: 4}"), "guess `how_many`: Expected "),
        (FILE.replace("answer: 4", "answer:"), "guess `how_many`: Expected "),
        (FILE.replace("    answer: 4\n", ""), "guess `how_many`: Object missing required field `answer`"),
        (FILE.replace("answer: 4", 'answer: "yes"'), "guess `how_many`: write yes or no without quotation marks."),
        (FILE.replace("answer: 4", 'answer: ""'), "guess `how_many` has no answer."),
        (FILE.replace("      6:", "      4:"), "guess `how_many`: `instead` has 4, which is right."),
        (FILE.replace("      6:", "      six:"), "has 'six', which is not such an answer. A number is wanted here."),
        (OF_A_LIST.replace('"[3, 6]"', "3"), "has 3, which is not such an answer. A list of numbers is wanted here"),
        (FILE.replace("    answer: 4", "    answer: 4\n    answer: 5"), "unit.yaml: `answer` is there twice."),
        (FILE.replace("Two and two.", "x" * 201), "guess `how_many` has a sentence of 201 characters, more than 200"),
        (FILE.replace("The shape stays.", "x" * 201), "`double` has a sentence of 201 characters, more than 200: xx"),
        (FILE.replace("One too many", "x" * 201), "guess `how_many` has a sentence of 209 characters, more than 200"),
        (FILE.replace("The shape stays.", " "), "`double` has an empty sentence."),
        (FILE.replace('    - "The shape stays."\n', ""), "unit.yaml: `double` has 2 hints; write 3, each"),
        (FILE + '    - "A fourth."\n', "unit.yaml: `double` has 4 hints; write 3"),
        (FILE.partition("hints:")[0], "unit.yaml has no hints for `double`: write 3"),
        (FILE.replace("double:", "treble:"), "unit.yaml has no hints for `double`"),
        (FILE + '  treble: ["a", "b", "c"]\n', "unit.yaml has hints for `treble`, but unit.py has no"),
        (FILE.replace("how_many:", "how_few:"), "unit.py asks for the guess `how_many`, but unit.yaml has no"),
        (None, "unit.py asks for the guess `how_many`, but unit.yaml has no answer to it."),
        (FILE + "- a: [\n", "unit.yaml: while parsing"),
        ("", "unit.yaml: Expected `object`, got `null`"),
        ("just words", "unit.yaml: Expected `object`, got `str`"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_one_sentence(unit, file, sentence):
    with pytest.raises(BuildError, match=re.escape(sentence)):
        unit(file)


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (CELLS.replace("# %%\nguess", '# %% locked="g"\nguess'), "guess `how_many` is in a locked or collapsed cell"),
        (CELLS.replace("# %%\nguess", "# %% drawing=true\nguess"), "guess `how_many` is in a locked or collapsed cell"),
        (CELLS.replace("...", "4"), 'unit.py: ask for a guess with `guess("name", ...)`, including the three dots.'),
        (CELLS.replace('"how_many"', "name"), 'unit.py: ask for a guess with `guess("name", ...)`'),
        (CELLS.replace("guess(", "print("), "unit.yaml answers the guess `how_many`, but unit.py has no `guess("),
        (CELLS + '\n# %%\nhint("treble")\n', "unit.py gives a hint for `treble`, but unit.yaml has none."),
    ],
)
def test_what_does_not_fit_in_the_text_is_one_sentence(unit, cells, sentence):
    with pytest.raises(BuildError, match=re.escape(sentence)):
        unit(FILE, cells)


def test_a_notebook_beside_an_older_check_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "older_check.py").write_text("def check(*_):\n    return 'checked'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"^older_check\.py is missing, or older than this notebook: put all"):
        exec(guarded("from older_check import check, guess", "older_check", ""), {})


def test_a_notebook_imports_what_its_text_imports_and_hints():
    assert guarded(
        "import math\nfrom my_check import check, solve  # it\n", "my_check", "", ["hint"]
    ) == textwrap.dedent(
        """\
        import math
        try:
            from my_check import check, solve, hint
        except ImportError:
            raise FileNotFoundError(
                "my_check.py is missing, or older than this notebook: put all files "
                "of this assignment into the folder of this notebook (in Colab into Files, "
                "at the left), then restart the kernel."
            ) from None
        """
    )


def test_in_marking_guesses_and_hints_do_nothing(grading_process):
    """They accept any arguments, and a cell that fails around them costs no points."""
    answers = solution_sources(UNIT)
    notebook = nbformat.reads(filled_in(UNIT, answers).decode(), as_version=4)
    (asked,) = (cell for cell in notebook.cells if cell.source.startswith('guess("most_alike"'))
    asked.source = 'assert guess("most_alike", 6, 7, at=8) is None'
    called = "for name in (check, guess, hint):\n    assert name() is name('softmax', 2, of=3) is None"
    notebook.cells.append(
        nbformat.v4.new_code_cell(f"{called}\nfrom attention_check import example\nexample('x', 9, y=1)")
    )
    report = grading_process.grade("typed.ipynb", nbformat.writes(notebook).encode(), UNIT)
    assert (report.status, report.score, report.message) == ("graded", report.max_score, "")


def test_the_data_go_wherever_the_check_goes(tmp_path):
    new_course(tmp_path / "autumn", [UNIT])
    names = [f"{CHECK}.py", zip_file(CHECK), data_file(UNIT)]
    for kind in ("source", "release"):
        for name in names:
            assert (tmp_path / "autumn" / kind / UNIT / name).read_bytes() == (RELEASE / UNIT / name).read_bytes()
    (carried,) = (
        cell
        for cell in single_file(RELEASE / UNIT / f"{UNIT}.ipynb", "attention_check").cells
        if "_carried" in cell.source
    )
    found = {}
    unpacks = carried.source.replace("sys.path.insert(0, _folder)", "found = sorted(Path(_folder).iterdir())")
    exec("from pathlib import Path\n" + unpacks, found)
    assert [path.name for path in found["found"]] == sorted(names)

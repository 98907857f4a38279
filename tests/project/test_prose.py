"""Docstrings, documentation pages and commit subjects keep the rules of `tests.prose`."""

import pytest

from tests import prose

IN_CODE = '''
class Cache:
    """What was found."""
    limit = 3
    """Maximum number of entries."""
    """Told anew by `told`."""

    def size(self, name):
        """Return the size; 0 if there is none.

        name: so
        many.
        """
        return Option(help="Handed in.")
'''


def test_the_repository_keeps_the_rules(capsys):
    assert prose.main() == 0, capsys.readouterr().out


def test_findings_in_code_have_their_lines():
    assert list(prose.in_module("a.py", IN_CODE)) == [
        ("a.py", 3, "a docstring opens with 'What'"),
        ("a.py", 11, "private word 'so many'"),
        ("a.py", 14, "private word 'Handed in'"),
    ]


def test_findings_in_a_page_have_their_lines():
    words = " ".join(["word"] * 28)
    page = f"""# Title

    {words} in an example, which may be long

- One
  item. [A link](https://example.org/a) and `some code` with
  {words}.

| {words} | in a table |
Two are none. Another is anew.
"""
    assert list(prose.in_page("a.md", page)) == [
        ("a.md", 10, "private word 'are none'"),
        ("a.md", 10, "private word 'anew'"),
        ("a.md", 6, "a sentence of 33 words"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Tests: check the prose\n\nThe body may be of any length, and may open with any word.\n",
        "# A comment of git's\n\nCollect extensions before the due date",
        "Units 1 to 4: rebuild unit 1",
        f"fixup! Tests: {'a' * 65}",
        "Note the due date",
        "",
    ],
)
def test_subjects_in_the_imperative_are_accepted(message):
    assert prose.in_subject(message) == []


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("Tests: " + "a" * 66, "The subject has 73 characters; use at most 72."),
        ("The check reads docs", "The subject opens with 'The'; open with a verb in the imperative."),
        ("Tests: who is told what", "The subject opens with 'who'; open with a verb in the imperative."),
        ("In tests, check prose", "The subject opens with 'In'; open with a verb in the imperative."),
    ],
)
def test_other_subjects_are_refused(message, rule, tmp_path, capsys):
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    assert prose.main(str(file)) == 1
    assert capsys.readouterr().out == f"{rule}\n"

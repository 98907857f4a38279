"""Rosters in other languages, and what a class's own settings say about its roster."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.cli.console import class_folder
from autograder.course import settings
from autograder.course.settings import VARIABLE, folder, is_class
from autograder.gradebook import roster, tables
from autograder.gradebook.roster import BadRoster, class_list
from autograder.lms.grade_tables import GradedClass, for_moodle
from autograder.lms.roster_match import RosterMatcher
from tests import REPOSITORY
from tests.lms.test_lms import readings_of
from tests.typed import stored

# As Moodle writes its grading worksheet in each language, with a line of it.
WORKSHEETS = stored("rosters")
OWN = [
    "id;first_name;last_name;email", "Matrikelnummer;Vorname;Nachname;E-Mail", "ID;VORNAME;Familienname;E-Mail-Adresse",
    "Identifiant;Prénom;Nom;Courriel", "Numéro étudiant;PRENOM;Nom de famille;Adresse e-mail",
    "Matrícula;Nombre;Apellidos;Correo electrónico", "Identificador;Nombre(s);Apellido(s);Correo",
    "Número de aluno;Nome;Apelido;Endereço de e-mail", "matricula;nome;sobrenome;e-mail",
]  # fmt: skip
LISTS = [
    "Username,First name,Last name,Email address", "Anmeldename,Vorname,Nachname,E-Mail-Adresse",
    "Nom d'utilisateur,Prénom,Nom de famille,Adresse de courriel", "Nombre de usuario,Nombre,Apellidos,Correo",
    "Nome de utilizador,Nome próprio,Apelido,Endereço de e-mail", "Nome de usuário,Nome,Sobrenome,E-mail",
]  # fmt: skip


def put(folder_, text, name="roster.csv"):
    path = folder_ / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("language", WORKSHEETS)
def test_moodles_worksheet_in_each_language(tmp_path, language):
    header, line = WORKSHEETS[language]
    found = roster.read(put(tmp_path, f"{header}\n{line}\n"))
    assert found.platform == "Moodle"
    assert [(one.id, one.last_name, one.email) for one in found.students] == [("a1", "Ada O'Neil", "ada@example.org")]
    assert not any("Unknown columns" in remark for remark in found.remarks), found.remarks
    name = "Ada O'Neil_501_assignsubmission_file_/unit.ipynb"
    assert RosterMatcher(found).student(readings_of(name, "Moodle"))[0] == "a1"
    table = for_moodle(GradedClass(found, [_NoGrades], {"unit": frozenset()}))
    assert table.rows[0] == [*found.header[:-1]]  # Moodle takes it back in its own language
    assert (table.rows[1][0][-3:], table.rows[1][5]) == ("501", "0")


class _NoGrades:
    unit, grades, max_score, points = "unit", {}, 20.0, {}


@pytest.mark.parametrize("header", OWN)
def test_a_table_of_ones_own_in_each_language(tmp_path, header):
    found = roster.read(put(tmp_path, f"{header}\nada;Ada;O'Neil, Jr.;ada@example.org\n"))
    assert found.platform == ""
    assert found.students == [roster.Enrolled("ada", "Ada", "O'Neil, Jr.", "ada@example.org")]


@pytest.mark.parametrize("header", LISTS)
def test_moodles_list_of_a_class_in_each_language(tmp_path, header):
    found = roster.read(put(tmp_path, f"{header}\nada,Ada,O,ada@example.org\n"))
    assert (found.platform, found.students) == ("Moodle", [roster.Enrolled("ada", "Ada", "O", "ada@example.org")])


def test_a_column_is_named_in_any_language(tmp_path):
    header, line = WORKSHEETS["German"]
    file = put(tmp_path, f"{header}\n{line}\n")
    for column in ("E-Mail-Adresse", "e-mail-adresse", "Email address"):
        assert [one.id for one in roster.read(file, id_column=column).students] == ["ada@example.org"]
        assert [one.id for one in roster.read(file, id_column=f"{column} before @").students] == ["ada"]


@given(
    st.lists(st.sampled_from(["ID", "id", "Identifiant", "Nom", "Nome", "Note", "", "Vorname", "Student"]), max_size=5)
)
def test_any_header_has_a_word_for_each_column(header):
    words = tables.in_english(header, {}, ["id"])
    assert set(words) == set(header)


@pytest.fixture
def of_class(tmp_path, monkeypatch):
    """A class's folder outside of the course, and what its settings are made to say."""
    monkeypatch.setenv(VARIABLE, str(REPOSITORY))
    folder.cache_clear()
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    (tmp_path / "source").mkdir()
    put(tmp_path, "Kenmerk;Voornaam;Achternaam\nada;Ada;Visser\n")

    def says(text):
        (tmp_path / "autograder.toml").write_text(text)
        return tmp_path

    yield says
    monkeypatch.undo()
    folder.cache_clear()


DUTCH = '[roster]\nheader = { Kenmerk = "id", Voornaam = "First name", achternaam = "last_name" }\n'


def test_other_words_are_in_the_settings_of_the_classs_folder(of_class):
    found = class_list(of_class(DUTCH)).roster
    assert found.students == [roster.Enrolled("ada", "Ada", "Visser")]
    found = class_list(of_class('[roster]\nid_column = "Voornaam"\n')).roster
    assert [one.id for one in found.students] == ["Ada"]
    assert [one.id for one in class_list(of_class(DUTCH), None, "Achternaam").roster.students] == ["Visser"]


@pytest.mark.parametrize("way", ["--course", "the folder we are in", "below it", "no variable"])
def test_a_class_with_settings_is_no_course(of_class, monkeypatch, way):
    """Whichever way the course is found, and wherever the command runs."""
    root = of_class(DUTCH)
    if way in ("no variable", "--course"):
        monkeypatch.delenv(VARIABLE)
    monkeypatch.chdir({"the folder we are in": root, "below it": root / "source"}.get(way, REPOSITORY))
    folder.cache_clear()
    chosen = class_folder(None if way == "the folder we are in" else root)
    assert chosen == root
    assert folder() == REPOSITORY
    assert settings.load().limits
    assert [one.last_name for one in class_list(chosen).roster.students] == ["Visser"]
    assert os.environ.get(VARIABLE) in (None, str(REPOSITORY))


def test_a_course_that_is_begun_is_no_class(tmp_path):
    (tmp_path / "autograder.toml").write_text("")
    assert not is_class(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text("")
    assert not is_class(tmp_path)
    (tmp_path / "roster.csv").write_text("")
    assert is_class(tmp_path)
    (tmp_path / "exercises").mkdir()
    assert not is_class(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[roster]\nheader = { Kenmerk = "identity" }\n', "`Kenmerk` as `identity`, which is not a column of a roster"),
        ("[roster]\nheader = 3\n", "cannot be used: Expected `object`"),
        ("[limits]\ncell_cpu_seconds = 10\n", r"unknown field `limits`.*may have only \[roster\] and"),
        ("[roster", "cannot be used: "),
    ],
)
def test_settings_of_a_class_that_cannot_be_used_are_said(of_class, text, why):
    with pytest.raises(BadRoster, match=why):
        class_list(of_class(text))

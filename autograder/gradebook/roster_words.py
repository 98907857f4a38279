"""Header words of rosters in English, German, French, Spanish and Portuguese, each read as its English word."""

import unicodedata
from collections.abc import Iterable, Mapping

from .roster_file import BadRoster

_WORDS: dict[str, tuple[str, ...]] = {
    # Of tables of one's own. A number that a university gives is an id.
    "id": (
        *("kennung", "matrikelnummer", "matrikel-nr.", "matrikelnr.", "matrikelnr", "student id", "student number"),
        *("numéro étudiant", "numéro d'étudiant", "n° étudiant", "no étudiant", "numéro de matricule", "matricule"),
        *("matrícula", "número de matrícula", "n.º de matrícula", "número de alumno", "número de estudiante"),
        *("número de aluno", "número de estudante", "número mecanográfico", "n.º mecanográfico"),
    ),
    "first name": (
        *("vorname", "vornamen", "prénom", "prénoms", "prénom(s)", "nombre", "nombres", "nombre(s)"),
        *("nome", "nome próprio", "nome(s)", "primeiro nome", "given name", "forename"),
    ),
    "last name": (
        *("nachname", "familienname", "zuname", "nom", "nom de famille", "apellido", "apellidos", "apellido(s)"),
        *("sobrenome", "apelido", "apelidos", "apelido(s)", "último nome", "family name"),
    ),
    "full name": (
        *("vollständiger name", "vor- und nachname", "nachname, vorname", "nom complet", "nom et prénom"),
        *("prénom et nom",),
        *("prénom / nom de famille", "prénom / nom", "vorname / nachname", "nombre completo", "nombre y apellidos"),
        *("apellidos y nombre", "nombre / apellidos", "nombre / apellido(s)", "nome completo", "nome e apelido"),
        *("nome / sobrenome", "nome / apelido", "nome e sobrenome"),
    ),
    "email address": (
        *("e-mail", "mail", "e-mail address", "e-mail-adresse", "mailadresse", "adresse de courriel", "courriel"),
        *("adresse e-mail", "adresse mail", "adresse électronique", "dirección de correo", "correo electrónico"),
        *("correo",),
        *("dirección de correo electrónico", "dirección email", "dirección e-mail", "endereço de email"),
        *("endereço de e-mail", "correio eletrónico", "endereço de correio eletrónico", "correio eletrônico"),
    ),
    # Of Moodle's.
    "username": (
        *("anmeldename", "benutzername", "benutzerkennung", "nutzername", "login", "nom d'utilisateur"),
        *("nombre de usuario", "usuario", "nome de utilizador", "nome de usuário", "identificação de usuário"),
    ),
    "id number": (
        *("id-nummer", "numéro d'identification", "número de id", "número id", "número de identificación"),
        *("número de identificação", "n.º de identificação"),
    ),
    "identifier": ("identifikator", "identifiant", "identificador"),
    "status": ("statut", "estado", "estatus", "situação"),
    "grade": ("bewertung", "note", "calificación", "nota", "avaliação"),
    "maximum grade": (
        *("bestwertung", "höchstwertung", "note maximale", "calificación máxima", "nota máxima", "avaliação máxima"),
    ),
    "grade can be changed": (
        *("bewertung kann geändert werden", "la note peut être modifiée", "la calificación puede ser cambiada"),
        *("la calificación puede cambiarse", "nota pode ser alterada", "a nota pode ser alterada"),
    ),
    "last modified (submission)": (
        *("zuletzt geändert (abgabe)", "dernière modification (travail remis)", "última modificación (entrega)"),
        *("última modificación (envío)", "última modificação (envio)", "última modificação (submissão)"),
        *("última modificação (trabalho)",),
    ),
    "last modified (grade)": (
        *("zuletzt geändert (bewertung)", "dernière modification (note)", "última modificación (calificación)"),
        *("última modificação (nota)", "última modificação (avaliação)"),
    ),
    "feedback comments": (
        *("feedback als kommentar", "feedback par commentaires", "comentarios de retroalimentación"),
        *("comentarios de la retroalimentación", "comentários de feedback"),
    ),
    "online text": ("texteingabe online", "texte en ligne", "texto en línea", "texto online", "texto em linha"),
    "groups": ("gruppe", "gruppen", "groupe", "groupes", "grupo", "grupos", "group"),
    "institution": ("einrichtung", "institución", "instituição"),
    "department": ("abteilung", "département", "departamento"),
    # Of Canvas's.
    "student": (
        *("studierende", "studierende/r", "student/in", "étudiant", "étudiante", "élève", "estudiante", "aluno"),
        *("estudante",),
    ),
    "section": ("abschnitt", "sektion", "sección", "seção", "secção"),
    "sis user id": (
        *("sis-benutzer-id", "id utilisateur sis", "id d'utilisateur sis", "id de usuario de sis"),
        *("id de usuario del sis", "id de usuário sis", "id de usuário do sis", "id de utilizador sis"),
    ),
    "sis login id": (
        *("sis-login-id", "sis-anmelde-id", "id de connexion sis", "id de inicio de sesión de sis"),
        *("id de inicio de sesión del sis", "id de login sis", "id de login do sis"),
    ),
}  # fmt: skip
_WORKSHEET = {"maximum grade", "grade can be changed", "last modified (submission)", "last modified (grade)"}
"""Any of these columns is of Moodle's grading worksheet only."""


def plain(word: str) -> str:
    """Return a header word as it is compared: in small letters, without accents, with single spaces."""
    decomposed = unicodedata.normalize("NFKD", word.replace("\u2019", "'").casefold())
    return " ".join("".join(one for one in decomposed if not unicodedata.combining(one)).split())


_ENGLISH = {plain(word): english for english, words in _WORDS.items() for word in words}


def known() -> set[str]:
    """Return all words that are read as another, as `plain` makes them."""
    return set(_ENGLISH)


def in_english(header: Iterable[str], own: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return for each word of a header the English one, in small letters; an unknown word is itself.

    own: more words, each with the English one. names: all English words that may stand there. Raise BadRoster if `own`
    has another.
    """
    allowed = {plain(name): name for name in (*names, *_WORDS)}
    more = {}
    for word, english in own.items():
        if plain(english) not in allowed:
            raise BadRoster(
                f"[roster.header] in autograder.toml reads `{word}` as `{english}`, which is no column of a roster. "
                f"There are: {', '.join(sorted(allowed.values()))}."
            )
        more[plain(word)] = allowed[plain(english)]
    found = {name: more.get(plain(name)) or _ENGLISH.get(plain(name)) or name.lower() for name in header}
    is_worksheet = bool(_WORKSHEET & set(found.values()))
    for name, word in found.items():
        if is_worksheet and word == "id":  # so German worksheets call the number of the participant
            found[name] = "identifier" if plain(name) == "id" else "id number"
        elif not is_worksheet and word == "identifier" and plain(name) != word and "id" not in found.values():
            found[name] = "id"
    return found

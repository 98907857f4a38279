"""What a report says of an exercise as a whole, as plain lines."""

from ..notebook import printable_lines
from ..report import ExerciseReport, WrittenQuestion

_WRITTEN = {
    "answered": "It is answered, and a person marks it.",
    "unanswered": "It is not answered.",
    "missing": "Its cell is not in the notebook.",
}


def of_exercise(exercise: ExerciseReport) -> str:
    """Its message, the sentences on the mistake, and where it goes wrong; empty if there is nothing to say."""
    named = [exercise.diagnosis, exercise.diagnosis.beside] if exercise.diagnosis else []
    where = exercise.whereabouts.told if exercise.whereabouts else ""
    said = [exercise.message, exercise.note, *(mistake.sentence for mistake in named if mistake), where]
    return printable_lines("\n".join(filter(None, said)))


def of_written(question: WrittenQuestion) -> str:
    """What became of a written question."""
    where = f" It was found in {question.found_in}." if question.found_in else ""
    return f"A written question for {question.max_score:g} points. {_WRITTEN[question.status]}{where}"

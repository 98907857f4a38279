"""What each mark is based on, kept in the gradebook with it, in our own table, which nbgrader ignores."""

from dataclasses import asdict, dataclass, fields

from sqlalchemy import Column, MetaData, String, Table, Text, inspect
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from ..report import Report

_METADATA = MetaData()
TABLE = Table(
    "autograder_mark",
    _METADATA,
    Column("submitted_notebook_id", String(32), primary_key=True),
    Column("submission", String(64), nullable=False),
    Column("status", String(32), nullable=False),
    Column("version", String(32), nullable=False),
    Column("kit", String(64), nullable=False),
    Column("torch", String(64), nullable=False),
    Column("device", String(32), nullable=False),
    Column("isolation", String(16), nullable=False),
    Column("enforced", Text, nullable=False),
    Column("cases", Text, nullable=False),
    Column("page", String(64), nullable=False),
)


@dataclass(frozen=True)
class Provenance:
    """Enough to explain a mark a year later. Fields that `Report` also has mean the same here."""

    submission: str
    status: str
    version: str
    kit: str
    torch: str
    device: str
    isolation: str
    enforced: str
    cases: str
    page: str
    """A digest of what the feedback page shows: if scores or comments have changed since, it is written again."""


_RECORDED = [TABLE.c[field.name] for field in fields(Provenance)]


def of(report: Report, page: str) -> Provenance:
    """The provenance of the mark in a report."""
    return Provenance(
        report.submission,
        report.status,
        report.version,
        report.kit,
        report.torch,
        report.device,
        report.isolation,
        ", ".join(report.enforced),
        report.cases,
        page,
    )


def make_table(engine: Engine) -> None:
    """Makes the table if it is not there."""
    _METADATA.create_all(engine)


def everyones(session: Session) -> dict[str, Provenance]:
    """What is recorded about all marks, by the gradebook's id of the submitted notebook."""
    if not inspect(session.connection()).has_table(TABLE.name):  # `nbgrader` alone makes none
        return {}
    rows = session.execute(TABLE.select().with_only_columns(TABLE.c.submitted_notebook_id, *_RECORDED))
    return {notebook: Provenance(*rest) for notebook, *rest in rows}


def find(session: Session, submitted_notebook: str) -> Provenance | None:
    """What is recorded about a mark, if anything."""
    mine = TABLE.c.submitted_notebook_id == submitted_notebook
    row = session.execute(TABLE.select().with_only_columns(*_RECORDED).where(mine)).one_or_none()
    return Provenance(*row) if row else None


def put(session: Session, submitted_notebook: str, provenance: Provenance) -> None:
    """Records it, replacing what was recorded before."""
    session.execute(TABLE.delete().where(TABLE.c.submitted_notebook_id == submitted_notebook))
    session.execute(TABLE.insert().values(submitted_notebook_id=submitted_notebook, **asdict(provenance)))

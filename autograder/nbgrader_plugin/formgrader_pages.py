"""Makes formgrader's pages safe for names and ids that students choose.

nbgrader's templates escape nothing: a student's id or name would be HTML on them, or code in their scripts, with the
rights of the instructor who is signed in. This module escapes everything that is put into a template. As a second
defence, the response's policy lets the browser run only the templates' own scripts.
"""

import base64
import hashlib
import re
import secrets
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader
from jinja2.ext import Extension
from markupsafe import escape
from nbconvert.exporters import HTMLExporter

_FORMGRADER = "nbgrader.server_extensions.formgrader"
_OURS = Path(__file__).parent / "templates" / "formgrader"
_SCRIPT = re.compile(r"<script(?=[\s>])")
_VALUE_IN_SCRIPT = re.compile(r'= "\{\{ *([\w.]+) *\}\}([\w/]*)";')
_HANDLER = re.compile(r'\son\w+="([^"]*)"', re.I)

_nonce: ContextVar[str] = ContextVar("_nonce")


def make_safe() -> None:
    """Change formgrader's handlers if it runs in this process, however it was started; else do nothing."""
    base, handlers = (sys.modules.get(f"{_FORMGRADER}.{name}") for name in ("base", "handlers"))
    if base is None or handlers is None or getattr(base.BaseHandler, "is_safe", False):
        return
    theirs = Path(handlers.template_path)
    base.BaseHandler.render = _render(theirs)
    base.BaseHandler.exporter = property(_Submissions)
    base.BaseHandler.scripts_allowed = _handlers_of(theirs)
    base.BaseHandler.is_safe = True
    # These answer with data, which tornado labels HTML, or with a file from a student's folder.
    base.BaseApiHandler.set_default_headers = _plain_text(base.BaseHandler.set_default_headers)
    for handler in (base.BaseApiHandler, handlers.SubmissionFilesHandler):
        handler.content_security_policy = property(_nothing_runs)


def _nothing_runs(handler: Any) -> str:
    return "frame-ancestors 'self'; default-src 'none'; sandbox"


def _plain_text(set_default_headers: Callable[[Any], None]) -> Callable[[Any], None]:
    def set_headers(handler: Any) -> None:
        set_default_headers(handler)
        handler.set_header("Content-Type", "text/plain; charset=UTF-8")

    return set_headers


def _render(theirs: Path) -> Callable[..., str]:
    loader = ChoiceLoader([FileSystemLoader([_OURS, theirs]), PrefixLoader({"nbgrader": FileSystemLoader(theirs)})])
    environment = Environment(loader=loader, autoescape=True, extensions=[_OwnScripts])
    environment.globals["script_nonce"] = _nonce.get

    def render(handler: Any, name: str, **values: Any) -> str:
        _allow_own_scripts(handler)
        return environment.get_template(name).render(**values)

    return render


class _Submissions:
    """Replaces the exporter with which formgrader makes a page of a notebook."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def from_filename(self, filename: str, resources: dict[str, Any]) -> Any:
        """Return a notebook's page as HTML. resources: formgrader's variables for the part around the notebook."""
        _allow_own_scripts(self._handler)
        escaped = {name: escape(value) if isinstance(value, str) else value for name, value in resources.items()}
        return self._exporter().from_filename(filename, resources=escaped)

    def _exporter(self) -> Any:
        """Return an exporter with the settings of the open course; another course may be opened after it."""
        settings = self._handler.settings
        config = settings["nbgrader_formgrader"].config
        made_for, exporter = settings.get("autograder_exporter", (None, None))
        if exporter is None or made_for != config:
            exporter = HTMLExporter(config=config)
            exporter.environment.add_extension(_OwnScripts)
            exporter.environment.globals["script_nonce"] = _nonce.get
            settings["autograder_exporter"] = config, exporter
        return exporter


class _OwnScripts(Extension):
    """Gives templates' scripts the response's nonce, and makes values in scripts JavaScript literals."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        source = _VALUE_IN_SCRIPT.sub(r'= {{ (\1 ~ "\2") | tojson }};', source)
        return _SCRIPT.sub('<script nonce="{{ script_nonce() }}"', source)


def _allow_own_scripts(handler: Any) -> None:
    nonce = secrets.token_urlsafe(16)
    _nonce.set(nonce)
    scripts = f"script-src 'nonce-{nonce}' 'unsafe-hashes' {handler.scripts_allowed}"
    policy = f"{scripts}; object-src 'none'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
    handler.set_header("Content-Security-Policy", f"{handler.content_security_policy}; {policy}")


def _handlers_of(templates: Path) -> str:
    """Return the digests of the templates' own event handlers, as a policy lists them."""
    codes = {code for path in templates.rglob("*.*") if path.is_file() for code in _HANDLER.findall(path.read_text())}
    digests = (hashlib.sha256(code.encode()).digest() for code in sorted(codes))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

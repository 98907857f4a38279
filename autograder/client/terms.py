"""On what a notebook is marked, in short: two processes with the same terms give the same report on it."""

import hashlib
import sys
from importlib.metadata import version

import msgspec

from ..course import digests
from ..course.folder import folder
from ..course.settings import Settings
from ..sandbox import isolation


def terms(settings: Settings) -> str:
    """A digest of kit and course, torch and Python, the settings, and the isolation that can be had.

    Raises NotIsolated and NoCourse.
    """
    asked = settings.isolation
    level = isolation.choose(asked.require, trust_submissions=asked.trust_submissions)
    its = [digests.course_digest(), str(folder()), version("torch"), sys.prefix, sys.version, settings, level]
    return hashlib.sha256(msgspec.json.encode(its)).hexdigest()


def on_device(terms: str, device: str) -> str:
    """The same with the device that is asked for, or that it comes to."""
    return f"{terms}.{device}"

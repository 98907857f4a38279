"""The distribution's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts it; without it the test fails."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.fail("These tests need Chromium: apt install chromium")
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, and for nobody else is it switched off.
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()

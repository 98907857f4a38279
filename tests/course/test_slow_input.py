"""The slowest texts that were found for what parses them; `make search` looks for slower ones."""

import pytest

from autograder.formatting.client import Formatter, PageFormatter
from autograder.sandbox.limits import PageLimits
from tests.fuzz import slow

TRUSTED_CPU_SECONDS = 20


@pytest.mark.parametrize("target", [name for name in slow.TARGETS if name not in slow.TRUSTED])
def test_what_is_slow_to_format_is_formatted_or_ended(target):
    """And what comes after it is formatted, however often it comes."""
    (text,) = slow.kept(target)
    with Formatter(PageLimits(), "best", trust_submissions=False) as formatter:
        page = PageFormatter(formatter)
        cost = 0.0
        for number in range(3):
            answer = formatter.format("code" if target == "code" else "markdown", text, cpu_seconds=1, wall_seconds=60)
            cost += answer.cpu_seconds
            assert answer.outcome in ("formatted", "too slow", "too large", "failed")
            assert f"<em>{number}</em>" in page.markdown(f"*{number}*")
        assert cost < 4


@pytest.mark.parametrize("target", slow.TRUSTED)
def test_what_the_trusted_side_reads_is_read_in_bounded_time(target):
    (text,) = slow.kept(target)
    with Formatter(PageLimits(), "best", trust_submissions=False) as formatter:
        assert slow.Cost(formatter).of(target, text) < TRUSTED_CPU_SECONDS

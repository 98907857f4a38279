"""The model at the end of unit 8, by the cells of its notebook and with the solutions as a student's answers."""

import contextlib
import io
import math
import re

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch
from torch import nn

from solutions import attention_masks as unit_5
from solutions import inference as unit_6
from solutions import tiny_language_model as unit_8
from tests import RELEASE

UNIT = "tiny_language_model"
CELLS = ("library_text", "bigram", "modern_model", "train_tiny", "write_with_cache", "top_p", "samples")


def run_cells():
    """Run the cells of the notebook's end without what they show; return what they define, and what they print."""
    given = {cell.id: cell.source for cell in nbformat.read(RELEASE / UNIT / f"{UNIT}.ipynb", as_version=4).cells}
    assert [name for name, source in given.items() if source.startswith("# Yours to change and to run")] == list(CELLS)
    setup, _, _ = given["setup"].partition("\ntry:")  # then the student check is imported
    known = {**vars(unit_8), "show": lambda make: None}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(setup, known)
        for name in CELLS:
            exec(given[name], known)
    return known, printed.getvalue()


@pytest.fixture(scope="module")
def notebook():
    """The names that the cells define, with a model that was trained as the notebook does it."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plt, "show", plt.close)
        known, _ = run_cells()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            known["trained_model"]()
        known["progress"] = printed.getvalue()
        yield known
    torch.set_num_threads(threads)


def printed_by(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        function(*arguments)
    return printed.getvalue()


def test_the_text_is_long_and_its_parts_share_no_paragraph(notebook):
    training, validation = (notebook[f"{part}_text"].split("\n") for part in ("training", "validation"))
    assert len(notebook["training_text"]) + len(notebook["validation_text"]) > 200_000
    assert 0.08 < len(notebook["validation_text"]) / len(notebook["training_text"]) < 0.15
    assert len({*training, *validation}) == len(training) + len(validation)
    assert set(notebook["letters"]) == {*notebook["training_text"], *notebook["validation_text"]}
    assert notebook["as_text"](notebook["as_tokens"](training[0])) == training[0]


def test_a_python_without_sources_is_told_so_and_nothing_else_fails(monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    known, printed = run_cells()
    assert printed.startswith("There is no text: this Python came without the sources of its standard\nlibrary.")
    for name in ("bigram_perplexity", "perplexities", "both_ways", "draw_kept", "samples"):
        with pytest.raises(ValueError, match="there is no text, see the message above"):
            known[name]()


def test_the_bigram_model_counts_pairs_and_adds_one(notebook, monkeypatch):
    monkeypatch.setitem(notebook, "letters", ["a", "b"])
    # After a: b twice, a once; after b: a once.
    expected = -(math.log((1 + 1) / (3 + 2)) + math.log((2 + 1) / (3 + 2)) + math.log((0 + 1) / (1 + 2))) / 3
    assert notebook["bigram_loss"]("aabab", "aabb") == pytest.approx(expected)


def test_the_validation_perplexity_is_far_below_that_of_the_bigram_model(notebook):
    table = printed_by(notebook["perplexities"])
    rows = dict(re.findall(r"^(\w+, [\w ]+?) +\d\.\d+ +([\d.]+)$", table, re.M))
    found = {name: float(perplexity) for name, perplexity in rows.items()}
    assert found["validation, all equally likely"] == len(notebook["letters"])
    assert 10 < found["validation, bigram model"] < 14
    assert 3.5 < found["validation, your model"] < 5
    assert found["training, your model"] < found["validation, your model"] < 1.4 * found["training, your model"]
    by_hand = math.exp(notebook["loss_on"](notebook["trained_model"](), notebook["validation_text"]))
    assert found["validation, your model"] == pytest.approx(by_hand, abs=0.006)


def test_its_progress_is_printed_and_two_trainings_are_the_same(notebook):
    steps = re.findall(r"^step (\d+): loss \d\.\d+, validation \d\.\d+$", notebook["progress"], re.M)
    assert [int(step) for step in steps] == list(range(100, 801, 100))
    again = [printed_by(notebook["trained_model"].__wrapped__, 20) for _ in range(2)]
    assert again[0] == again[1] != ""


def test_the_samples_copy_no_forty_letters(notebook):
    found = printed_by(notebook["samples"])
    assert found == printed_by(notebook["samples"])
    texts = [text.replace("\n  ", "\n") for text in re.split(r"^- |\ntop p:\n|\nlongest", found, flags=re.M)[1:-1]]
    texts = [text.rstrip("\n") if len(text) > 128 else text for text in texts if text]
    assert [len(text) for text in texts] == [128] * 6
    copied = [
        text[start : start + length]
        for text in texts
        for start in range(128)
        for length in range(1, 129 - start)
        if text[start : start + length] in notebook["training_text"]
    ]
    longest = max(map(len, copied))
    assert f"longest copy of the training text: {longest} letters, " in found
    assert 5 < longest < 40


def test_the_longest_copy_is_found():
    longest_copy = run_cells()[0]["longest_copy"]
    assert longest_copy("xabcdefy", "abc cdef bcde") == "bcde"
    assert longest_copy("abc", "abc") == "abc"
    assert longest_copy("abc", "xyz") == ""


def test_a_cache_changes_nothing_of_what_is_written(notebook):
    printed = printed_by(notebook["both_ways"])
    assert "both ways write the same: True" in printed
    assert "letters read: 8122 without a cache, 127 with it" in printed


@pytest.mark.parametrize("lengths", [(128,), (1,) * 128, (100, 27, 1), (3, 60, 65)])
@pytest.mark.parametrize("kind", ["the notebook's cache", "the student's cache of unit 6"])
def test_any_cut_into_steps_gives_the_logits_of_one_pass(notebook, lengths, kind):
    new_cache = unit_6.KVCache if kind == "the student's cache of unit 6" else notebook["KVCache"]
    torch.manual_seed(0)
    model = notebook["TinyLanguageModel"]().double()
    tokens = torch.randint(len(notebook["letters"]), (2, 128))
    caches = [new_cache() for _ in model.blocks]
    steps = [model(step, caches) for step in tokens.split(lengths, dim=1)]
    assert torch.allclose(torch.cat(steps, dim=1), model(tokens), atol=1e-9)
    assert {cache.keys.shape for cache in caches} == {(2, 2, 128, 24)}  # two groups for four heads


def test_with_a_key_for_each_head_and_no_rotation_it_is_the_student_s_block(notebook):
    torch.manual_seed(0)
    modern = notebook["ModernBlock"](96, 4, 4)
    modern.waves.copy_(torch.tensor([0.0, 1.0]).repeat(128, 12))  # sine 0 and cosine 1
    x = torch.randn(2, 50, 96)
    assert torch.allclose(modern(x, notebook["KVCache"]()), modern.block(x), atol=1e-5)


def test_rotation_is_that_of_unit_5(notebook):
    x = torch.randn(2, 4, 128, 24)
    found = notebook["rotated"](x, unit_8.sinusoidal_positions(128, 24))
    assert torch.allclose(found, unit_5.rotary_embedding(x, torch.arange(128)), atol=1e-4)


def test_top_p_keeps_the_smallest_set_that_has_p(notebook):
    torch.manual_seed(0)
    logits = 3 * torch.randn(50, 9)
    for row, kept in zip(logits, notebook["top_p"](logits, 0.9), strict=True):
        ranked = sorted(range(9), key=lambda letter: -row[letter].item())
        shares = row.softmax(-1)[ranked].cumsum(-1)
        number = int((shares < 0.9).sum()) + 1
        assert {letter for letter in range(9) if kept[letter].isfinite()} == set(ranked[:number])
        assert torch.equal(kept[ranked[:number]], row[ranked[:number]])


def test_the_picture_of_top_p_has_a_bar_for_each_letter(notebook, monkeypatch):
    heights = []
    monkeypatch.setattr(plt, "show", lambda: heights.extend(bar.get_height() for bar in plt.gca().patches))
    notebook["draw_kept"]()
    plt.close("all")
    assert len(heights) == 59
    assert min(heights) == 1
    assert max(heights) > 10


def test_a_function_that_is_not_written_is_what_the_student_reads(notebook, monkeypatch):
    def stub(*arguments):
        raise NotImplementedError

    class Unwritten(nn.Module):
        def __init__(self, *arguments):
            raise NotImplementedError

    monkeypatch.setitem(notebook, "TransformerBlock", Unwritten)
    with pytest.raises(NotImplementedError):
        notebook["trained_model"].__wrapped__(1)
    monkeypatch.setitem(notebook, "sample_next", stub)
    for name in ("both_ways", "samples"):
        with pytest.raises(NotImplementedError):
            notebook[name]()

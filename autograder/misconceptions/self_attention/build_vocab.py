"""What goes wrong in `build_vocab`."""

import torch

from ...catalogue import misconception


@misconception("build_vocab", kind="edge", caught_by="test_repeated_words")
def repeated_words_counted_twice(sentence):
    """A word that stands twice takes two numbers, and one is lost; number the distinct words: sorted(set(words))."""
    return {word: index for index, word in enumerate(sorted(sentence.replace(",", "").split()))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_not_sorted(sentence):
    """The words are numbered in the order of the sentence; sort them first."""
    return {word: index for index, word in enumerate(dict.fromkeys(sentence.replace(",", "").split()))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def commas_kept(sentence):
    """Commas stay on their words (`short,`); drop them before splitting."""
    return {word: index for index, word in enumerate(sorted(set(sentence.split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def commas_become_spaces(sentence):
    """Commas are replaced by spaces, which splits `Yes,no` in two; they are dropped: replace(",", "")."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", " ").split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def split_at_single_spaces(sentence):
    """split(" ") makes empty words of two spaces in a row; split() takes any white space."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split(" "))))}


@misconception("build_vocab", kind="edge", caught_by="test_worked_example")
def words_lowered(sentence):
    """The words are turned to lower case; they are kept as they are, and capitals sort first."""
    return {word: index for index, word in enumerate(sorted(set(sentence.lower().replace(",", "").split())))}


@misconception("build_vocab", kind="edge", caught_by="test_worked_example")
def sorted_without_case(sentence):
    """The sort ignores case; Python's plain sorted() puts capitals first."""
    words = sorted(set(sentence.replace(",", "").split()), key=str.lower)
    return {word: index for index, word in enumerate(words)}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def numbered_from_one(sentence):
    """The numbers start at 1; the first word's index is 0."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split())), start=1)}


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def index_to_word(sentence):
    """The dict goes from number to word; it should go from word to number."""
    return dict(enumerate(sorted(set(sentence.replace(",", "").split()))))


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_by_frequency(sentence):
    """The words are numbered by how often they stand; sort them alphabetically."""
    words = sentence.replace(",", "").split()
    return {
        word: index
        for index, word in enumerate(sorted(set(words), key=lambda word: (-words.count(word), words.index(word))))
    }


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_sorted_backwards(sentence):
    """The words are sorted backwards; sorted() without reverse gives the first word number 0."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split()), reverse=True))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_by_length(sentence):
    """The words are sorted by their length; sort them alphabetically."""
    words = sorted(set(sentence.replace(",", "").split()))
    return {word: index for index, word in enumerate(sorted(words, key=len))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_counted(sentence):
    """The numbers say how often each word stands; they should be its place in the sorted words."""
    words = sentence.replace(",", "").split()
    return {word: words.count(word) for word in sorted(words)}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def letters_numbered(sentence):
    """Letters are numbered, not words: split the sentence with split()."""
    return {letter: index for index, letter in enumerate(sorted(set(sentence.replace(",", ""))))}


@misconception("build_vocab", kind="edge", caught_by="test_repeated_words")
def first_place_in_the_sorted_words(sentence):
    """A word's number is its place among all words, repeated ones too, so numbers are left out; drop repeated
    words first.
    """
    words = sorted(sentence.replace(",", "").split())
    return {word: words.index(word) for word in words}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def split_at_the_commas(sentence):
    """The sentence is split at the commas; it is split at white space, and commas are dropped."""
    return {words: index for index, words in enumerate(sorted(set(sentence.split(","))))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def comma_with_its_space_replaced(sentence):
    """A comma inside a word stays: only those at the end of a word are dropped; replace(",", "") drops every one."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(", ", " ").split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def empty_word_of_a_lone_comma(sentence):
    """Commas are stripped after splitting: one inside a word stays, and a lone one leaves an empty word. Drop them
    first.
    """
    return {word: index for index, word in enumerate(sorted({word.strip(",") for word in sentence.split()}))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def first_comma_only(sentence):
    """Only the first comma is dropped; replace(",", "") without a count drops all of them."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "", 1).split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def full_stops_dropped(sentence):
    """Full stops are dropped as well; only commas are."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").replace(".", "").split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def all_punctuation_dropped(sentence):
    """All punctuation is dropped, the apostrophe in `don't` too; only commas are."""
    kept = "".join(letter for letter in sentence if letter.isalnum() or letter.isspace())
    return {word: index for index, word in enumerate(sorted(set(kept.split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def words_by_a_pattern(sentence):
    """Words are cut at every sign that is no letter or digit, such as an apostrophe; drop the commas and split at
    white space.
    """
    signs = "".join(letter if letter.isalnum() else " " for letter in sentence)
    return {word: index for index, word in enumerate(sorted(set(signs.split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def punctuation_stripped_from_the_ends(sentence):
    """Punctuation is stripped from the ends of words; only commas are dropped, wherever they are."""
    return {word: index for index, word in enumerate(sorted({word.strip(".,!?;:'") for word in sentence.split()}))}


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def unknown_word_first(sentence):
    """A word for unknown ones takes number 0; the vocabulary holds the sentence's words alone."""
    return {word: index for index, word in enumerate(["<unk>", *sorted(set(sentence.replace(",", "").split()))])}


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def vocabulary_as_a_list(sentence):
    """The result is a list of words; a dict from word to number is asked for."""
    return sorted(set(sentence.replace(",", "").split()))


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def vocabulary_as_pairs(sentence):
    """The result is a list of pairs; make a dict from word to number of it."""
    return [(word, index) for index, word in enumerate(sorted(set(sentence.replace(",", "").split())))]


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def numbers_as_text(sentence):
    """The numbers are strings; they should be integers."""
    return {word: str(index) for index, word in enumerate(sorted(set(sentence.replace(",", "").split())))}


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def numbers_as_tensors(sentence):
    """The numbers are tensors; they should be plain integers."""
    return {word: torch.tensor(index) for index, word in enumerate(sorted(set(sentence.replace(",", "").split())))}


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def vocabulary_with_its_size(sentence):
    """It returns a pair, the dict and its size; only the dict is asked for."""
    vocab = {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split())))}
    return vocab, len(vocab)


@misconception("build_vocab", kind="contract", caught_by="test_worked_example")
def vocabulary_not_returned(sentence):
    """Nothing is returned (None): end the function with `return`."""
    {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split())))}


@misconception("build_vocab", kind="hard-coded output", caught_by="test_repeated_words")
def vocabulary_typed_in(sentence):
    """The worked example's vocabulary is typed in; make it from the sentence."""
    return {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}

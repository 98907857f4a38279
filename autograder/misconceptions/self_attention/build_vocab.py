"""What goes wrong in `build_vocab`."""

from ...catalogue import misconception


@misconception("build_vocab", kind="value", caught_by="test_repeated_words")
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


@misconception("build_vocab", kind="dropout", caught_by="test_commas_and_spaces")
def commas_become_spaces(sentence):
    """Commas are replaced by spaces, which splits `Yes,no` in two; they are dropped: replace(",", "")."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", " ").split())))}


@misconception("build_vocab", kind="edge", caught_by="test_commas_and_spaces")
def split_at_single_spaces(sentence):
    """split(" ") makes empty words of two spaces in a row; split() takes any white space."""
    return {word: index for index, word in enumerate(sorted(set(sentence.replace(",", "").split(" "))))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
def words_lowered(sentence):
    """The words are turned to lower case; they are kept as they are, and capitals sort first."""
    return {word: index for index, word in enumerate(sorted(set(sentence.lower().replace(",", "").split())))}


@misconception("build_vocab", kind="value", caught_by="test_worked_example")
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

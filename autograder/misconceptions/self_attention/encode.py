"""What goes wrong in `encode`."""

import torch

from ...catalogue import misconception


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def vocabulary_built_anew(sentence, vocab):
    """The numbers come from the sentence's own words; look each word up in the vocabulary that is passed in."""
    words = sentence.replace(",", "").split()
    own = {word: index for index, word in enumerate(sorted(set(words)))}
    return torch.tensor([(vocab[word], own[word])[1] for word in words])


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def tokens_sorted(sentence, vocab):
    """The tokens are sorted; they stand in the order of the sentence."""
    return torch.tensor(sorted(vocab[word] for word in sentence.replace(",", "").split()))


@misconception("encode", kind="edge", caught_by="test_given_vocabulary")
def each_word_once(sentence, vocab):
    """A word that stands twice is encoded once; every word of the sentence gives a token."""
    return torch.tensor([vocab[word] for word in dict.fromkeys(sentence.replace(",", "").split())])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_skipped(sentence, vocab):
    """Words that the vocabulary does not have are left out silently; vocab[word] raises the KeyError."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split() if word in vocab])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_become_zero(sentence, vocab):
    """Unknown words become another word's number (`vocab.get`); vocab[word] raises the KeyError."""
    return torch.tensor([vocab.get(word, 0) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="dtype", caught_by="test_int64")
def float_tokens(sentence, vocab):
    """The tokens are floats; an embedding layer wants integers: int64."""
    return torch.tensor([float(vocab[word]) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="dtype", caught_by="test_int64")
def tokens_in_int32(sentence, vocab):
    """The tokens are int32; int64 is expected, PyTorch's own integer type."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.int32)


@misconception("encode", kind="contract", caught_by="test_worked_example")
def list_of_tokens(sentence, vocab):
    """The result is a list; make a tensor of it with torch.tensor."""
    return [vocab[word] for word in sentence.replace(",", "").split()]


@misconception("encode", kind="value", caught_by="test_worked_example")
def commas_kept_in_words(sentence, vocab):
    """Commas stay on their words, so that `short,` is not found; drop them before splitting."""
    return torch.tensor([vocab[word] for word in sentence.split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_become_minus_one(sentence, vocab):
    """Unknown words become -1 (`vocab.get(word, -1)`); vocab[word] raises the KeyError."""
    return torch.tensor([vocab.get(word, -1) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_get_a_new_number(sentence, vocab):
    """Unknown words get the next free number; vocab[word] raises the KeyError."""
    return torch.tensor([vocab.get(word, len(vocab)) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_become_none(sentence, vocab):
    """It ends in another error than KeyError (`vocab.get` without a default gives None); vocab[word] raises the
    KeyError.
    """
    return torch.tensor([vocab.get(word) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_are_a_value_error(sentence, vocab):
    """An unknown word raises a ValueError; a KeyError is asked for, as vocab[word] raises it."""
    for word in sentence.replace(",", "").split():
        if word not in vocab:
            raise ValueError(word)
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_are_asserted(sentence, vocab):
    """An unknown word fails an assertion; a KeyError is asked for, as vocab[word] raises it."""
    assert all(word in vocab for word in sentence.replace(",", "").split())
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_are_a_plain_exception(sentence, vocab):
    """An unknown word raises a plain Exception; a KeyError is asked for, as vocab[word] raises it."""
    for word in sentence.replace(",", "").split():
        if word not in vocab:
            raise Exception(word)
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_unknown_word")
def unknown_words_give_none(sentence, vocab):
    """The KeyError is caught and None returned; let it pass on to the caller."""
    try:
        return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])
    except KeyError:
        return None


@misconception("encode", kind="value", caught_by="test_worked_example")
def words_sorted_before_the_lookup(sentence, vocab):
    """The words are sorted first; the tokens stand in the order of the sentence."""
    return torch.tensor([vocab[word] for word in sorted(sentence.replace(",", "").split())])


@misconception("encode", kind="value", caught_by="test_worked_example")
def words_in_the_vocabularys_order(sentence, vocab):
    """The vocabulary is walked, not the sentence: tokens stand in the sentence's order, once for each word in it."""
    words = sentence.replace(",", "").split()
    return torch.tensor([index for word, index in vocab.items() if word in words])


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def place_in_the_vocabulary(sentence, vocab):
    """A word's place in the dict is taken; its number is vocab[word]."""
    words = list(vocab)
    return torch.tensor([words.index(word) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="value", caught_by="test_given_vocabulary")
def place_in_the_sorted_vocabulary(sentence, vocab):
    """A word's place in the sorted vocabulary is taken; its number is vocab[word]."""
    words = sorted(vocab)
    return torch.tensor([words.index(word) for word in sentence.replace(",", "").split()])


@misconception("encode", kind="value", caught_by="test_worked_example")
def places_in_the_sentence(sentence, vocab):
    """The places 0, 1, 2, ... in the sentence are returned; look each word up in the vocabulary."""
    return torch.arange(len(sentence.replace(",", "").split()))


@misconception("encode", kind="edge", caught_by="test_worked_example")
def sentence_lowered(sentence, vocab):
    """The sentence is turned to lower case, so that `Life` is not found; words are looked up as they stand."""
    return torch.tensor([vocab[word] for word in sentence.lower().replace(",", "").split()])


@misconception("encode", kind="value", caught_by="test_worked_example")
def letters_looked_up(sentence, vocab):
    """Letters are looked up, not words: split the sentence with split()."""
    return torch.tensor([vocab[letter] for letter in sentence])


@misconception("encode", kind="edge", caught_by="test_commas_and_spaces")
def commas_become_spaces_in_encode(sentence, vocab):
    """The words are not those of the vocabulary where a comma or a space stands oddly: replace(",", "") and then
    split().
    """
    return torch.tensor([vocab[word] for word in sentence.replace(",", " ").split()])


@misconception("encode", kind="contract", caught_by="test_worked_example")
def one_row_of_tokens(sentence, vocab):
    """The tokens come as a row of shape (1, T); they should have shape (T,)."""
    return torch.tensor([[vocab[word] for word in sentence.replace(",", "").split()]])


@misconception("encode", kind="contract", caught_by="test_worked_example")
def one_column_of_tokens(sentence, vocab):
    """The tokens come as a column of shape (T, 1); they should have shape (T,)."""
    return torch.tensor([[vocab[word]] for word in sentence.replace(",", "").split()])


@misconception("encode", kind="contract", caught_by="test_worked_example")
def one_hot_tokens(sentence, vocab):
    """One-hot rows are returned; the numbers themselves are asked for, of shape (T,)."""
    return torch.nn.functional.one_hot(torch.tensor([vocab[word] for word in sentence.replace(",", "").split()]))


@misconception("encode", kind="edge", caught_by="test_one_word")
def one_word_squeezed(sentence, vocab):
    """squeeze() takes away the dimension of a single word: with T = 1 the shape should be (1,)."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()]).squeeze()


@misconception("encode", kind="dtype", caught_by="test_int64")
def tokens_in_int16(sentence, vocab):
    """The tokens are int16; int64 is expected, PyTorch's own integer type."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.int16)


@misconception("encode", kind="dtype", caught_by="test_int64")
def tokens_in_uint8(sentence, vocab):
    """The tokens are uint8, which ends at 255; int64 is expected."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.uint8)


@misconception("encode", kind="dtype", caught_by="test_int64")
def tokens_in_float64(sentence, vocab):
    """The tokens are float64; an embedding layer looks up int64."""
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.float64)


@misconception("encode", kind="hard-coded output", caught_by="test_given_vocabulary")
def vocabulary_typed_in_again(sentence, vocab):
    """The worked example's vocabulary is written into the function; look words up in the one that is passed in."""
    vocab = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])


@misconception("encode", kind="hard-coded output", caught_by="test_given_vocabulary")
def tokens_typed_in(sentence, vocab):
    """The worked example's tokens are typed in; look up the words of the sentence."""
    return torch.tensor([0, 4, 5, 2, 1, 3])


@misconception("encode", kind="contract", caught_by="test_worked_example")
def tokens_not_returned(sentence, vocab):
    """Nothing is returned (None): end the function with `return`."""
    torch.tensor([vocab[word] for word in sentence.replace(",", "").split()])

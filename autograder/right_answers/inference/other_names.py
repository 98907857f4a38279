"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

from autograder.catalogue import right_answer


@right_answer("attention_flops")
def flops_in_other_names(sequences, tokens, width, heads):
    """other names for all arguments"""
    return sequences * (8 * tokens * width * width + 4 * tokens * tokens * width)


@right_answer("kv_cache_bytes")
def bytes_in_other_names(n, heads, width, places, size):
    """other names for all arguments"""
    return n * heads * width * places * size * 2


@right_answer("share_heads")
def shared_in_other_names(groups, heads):
    """other names for all arguments"""
    return groups.repeat_interleave(heads // len(groups[0]), 1)

"""Right answers to `simple_self_attention`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("simple_self_attention")
def query_by_query(inputs):
    """one query at a time"""
    rows = []
    for query in inputs:
        weights = torch.nn.functional.softmax(inputs @ query, dim=0)
        rows.append(weights @ inputs)
    return torch.stack(rows)


@right_answer("simple_self_attention")
def softmax_written_out(inputs):
    """the softmax written out"""
    scores = torch.mm(inputs, inputs.t())
    exponentials = torch.exp(scores - scores.max(dim=1, keepdim=True)[0])
    return torch.mm(exponentials / exponentials.sum(dim=1, keepdim=True), inputs)

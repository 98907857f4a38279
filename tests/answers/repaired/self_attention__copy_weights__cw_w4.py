# line: b.weight.data = a.data.T
def copy_weights(v1, v2):
    for a, b in [(v1.W_query, v2.W_query), (v1.W_key, v2.W_key), (v1.W_value, v2.W_value)]:
        b.weight.data = a.data.T
        if b.bias is not None:
            b.bias.data.zero_()

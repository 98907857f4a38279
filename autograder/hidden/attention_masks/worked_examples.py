"""Inputs and results of the unit's worked examples."""

import torch

OTHER_WORDS = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.7], [0.1, 0.3]])
"""Four words of another sentence, of width 2."""
SEED_123 = [
    [-0.1162, 0.1385, -0.2401, -0.0191],
    [-0.1234, 0.1359, -0.2381, -0.0260],
    [-0.1232, 0.1360, -0.2382, -0.0258],
    [-0.1160, 0.1382, -0.2400, -0.0191],
    [-0.1147, 0.1388, -0.2404, -0.0179],
    [-0.1185, 0.1374, -0.2393, -0.0215],
]
"""Context vectors of the six words over `OTHER_WORDS`, from `CrossAttention(3, 2, 4, 2)` built under seed 123."""

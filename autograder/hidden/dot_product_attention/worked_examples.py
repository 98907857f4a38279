"""What the source document's worked examples start from and print."""

import torch

# The second word's scores and weights in the worked example, to four decimals.
SCORES = torch.tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
WEIGHTS = torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])

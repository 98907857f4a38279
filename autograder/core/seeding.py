"""Seeding what draws by chance, and no more than that.

torch.manual_seed also queues a call, with a formatted stack, for each kind of device that is not in use: several
milliseconds, and memory that is never given back.
"""

import torch

# Bound before any cell can put something else in its place.
_cpu_generator = torch.default_generator


def seed_generators(seed: int, device: torch.device) -> None:
    """Seeds the CPU's generator, and the device's."""
    _cpu_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def seed_in_use(seed: int) -> None:
    """Seeds the generators of the devices that this process computes on."""
    seed_generators(seed, torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))

"""The hidden graders, one module a unit. Plain pytest; what stands beside it is in `conftest` and `statements`."""

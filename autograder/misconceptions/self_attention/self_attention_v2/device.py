"""Mistakes of the kind "device"."""

import torch

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersResultLeftOnTheCpu(RightLayers):
    """The result ends on the CPU, whatever device the module is on."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).cpu()


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersFilledIntoFloat32Zeros(RightLayers):
    """The result is filled into torch.zeros or torch.empty, float32 on the CPU; a matrix product has the right dtype
    and device.
    """

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        context = torch.zeros(values.shape)
        for i, row in enumerate(weights):
            context[i] = row @ values
        return context


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersCpuTensorMade(RightLayers):
    """A tensor that the module makes stays on the CPU when the module moves; use a number, or x's device."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values

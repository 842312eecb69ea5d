"""Trains a model with the operations that most models have, and prints what torch counts for one step.

The second number is the part of attention's backward pass that computes its scores again, which torch counts.
"""

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

torch.manual_seed(0)
aten = torch.ops.aten


def forward(query, key, value, *args, out_shape=None, **kwargs):
    return sdpa_flop_count(query, key, value)


def backward(gradient, query, key, value, *args, out_shape=None, **kwargs):
    return sdpa_backward_flop_count(gradient, query, key, value)


# torch has them by the names of a GPU's operators only.
ON_CPU = {
    aten._scaled_dot_product_flash_attention_for_cpu: forward,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.picture = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
            torch.nn.ReLU(),
            torch.nn.ConvTranspose2d(8, 8, 3, stride=2, output_padding=1, padding=1),
            torch.nn.Conv2d(8, 4, 5, dilation=2),
        )
        self.text = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.last = torch.nn.Linear(32, 3)

    def forward(self, pictures, texts):
        texts = self.text(texts)
        heads = texts.unflatten(2, (4, 8)).transpose(1, 2)
        texts = (
            torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(2)
        )
        with torch.autocast("cpu", torch.bfloat16):
            alike = torch.einsum("bld,bmd->blm", texts, texts)
        return self.picture(pictures).mean() + self.last(texts).sum() + alike.float().mean()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def step():
    loss = model(torch.randn(4, 3, 32, 32), torch.randn(4, 10, 32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


with FlopCounterMode(display=False, custom_mapping=ON_CPU) as counter:
    step()
for _ in range(40):
    step()
of_backward = counter.get_flop_counts()["Global"][aten._scaled_dot_product_flash_attention_for_cpu_backward]
print(counter.get_total_flops(), of_backward // 5)

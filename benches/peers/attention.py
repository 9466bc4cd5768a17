"""Times a step of the image model of `lff` Figure 3 in PyTorch on the CPU: forward, backward, Adam, f32.

Two pre-norm layers of width 64 with 4 heads and full causal attention on 144 pixels of 16 levels, batches of 16, and
learnable Fourier features with a modulator as position encoding. Attention is PyTorch's fused
scaled_dot_product_attention. One process on each core; seconds per step are divided by the number of cores.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

import common

SIDE, LEVELS, LAYERS, WIDTH, HEADS, HIDDEN, BATCH, FEATURES, MODULATOR = 12, 16, 2, 64, 4, 128, 16, 64, 16
LENGTH = SIDE * SIDE


class Encoder(nn.Module):
    """Algorithm 1 with layer norms and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.frequencies = nn.Parameter(torch.randn(2, FEATURES // 2))
        self.first_norm, self.first = nn.LayerNorm(FEATURES, eps=1e-6), nn.Linear(FEATURES, MODULATOR)
        self.second_norm, self.second = nn.LayerNorm(MODULATOR, eps=1e-6), nn.Linear(MODULATOR, WIDTH)
        rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
        self.register_buffer("positions", torch.stack([rows, columns], -1).reshape(LENGTH, 2).float())

    def forward(self) -> torch.Tensor:
        phases = self.positions @ self.frequencies
        features = torch.cat([phases.cos(), phases.sin()], 1) / math.sqrt(FEATURES)
        hidden = F.dropout(F.relu(self.first(self.first_norm(features))), 0.1)
        return self.second(self.second_norm(hidden))


class Block(nn.Module):
    """Attention and two dense layers, each after a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.dense_norm = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = lambda t: t.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
        query, key, value = map(split, self.inputs(self.attention_norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(F.gelu(self.up(self.dense_norm(x)), approximate="tanh"))


class Model(nn.Module):
    """Levels in, scores of levels out."""

    def __init__(self) -> None:
        super().__init__()
        self.levels, self.encoder = nn.Embedding(LEVELS, WIDTH), Encoder()
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.output = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, LEVELS)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        moved = F.pad(images[:, :-1], (1, 0))
        return self.output(self.norm(self.blocks(self.levels(moved) + self.encoder())))


def main() -> None:
    own = common.arguments(__doc__, ["image-model"])
    if own.worker is None:
        times = common.workers(own, own.threads, 1)
        return common.print_times(times[0]["implementation"], common.together(times))
    torch.set_num_threads(own.threads)
    torch.manual_seed(0)
    model = Model()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    images = torch.randint(LEVELS, (BATCH, LENGTH))

    def step() -> None:
        adam.zero_grad()
        F.cross_entropy(model(images).reshape(-1, LEVELS), images.reshape(-1)).backward()
        adam.step()

    common.print_times(f"torch {torch.__version__}", common.median_seconds(step, own.repeats))


if __name__ == "__main__":
    main()

"""Times the closed form of `trading` (Table 1) in PyTorch on the CPU: 256x256 points, 3 channels, f32.

One image: encode, torch.linalg.lstsq(Psi, I), two products per channel. With 16 images, the same for each of them, as the authors'
scripts do it; besides, encode and lstsq once and all 48 channels in one batched product.
"""

import torch

import common

SIDE, CHANNELS = 256, 3
WORKLOADS = {
    "closed-form": ("gau", 1),
    "closed-form-16": ("gau", 16),
    "closed-form-tri": ("tri", 1),
    "closed-form-tri-16": ("tri", 16),
}


def encode(encoder: str) -> torch.Tensor:
    """Psi (points x features) with the closed-form parameters of Table 1; x_i = i/256, centers j/256."""
    x = torch.arange(SIDE) / SIDE
    delta = x[:, None] - x[None, :]
    if encoder == "gau":
        return torch.exp(-(delta**2) / (2 * 0.0025**2))
    return torch.clamp(1 - delta.abs() * SIDE, min=0)


def factor(encoder: str) -> torch.Tensor:
    """Pseudo-inverse of Psi, as a least-squares solution."""
    return torch.linalg.lstsq(encode(encoder), torch.eye(SIDE)).solution


def solve(inverse: torch.Tensor, channels: torch.Tensor) -> torch.Tensor:
    """W_c = Psi^+ S_c (Psi^+)^T for channels (C x 256 x 256)."""
    return inverse @ channels @ inverse.T


def main() -> None:
    own = common.arguments(__doc__, WORKLOADS)
    torch.set_num_threads(own.threads)
    torch.manual_seed(0)
    encoder, count = WORKLOADS[own.workload]
    images = torch.rand(count, CHANNELS, SIDE, SIDE)
    stacked = images.reshape(count * CHANNELS, SIDE, SIDE)

    def one_by_one():
        for image in images:
            solve(factor(encoder), image)

    also = {}
    with torch.no_grad():
        seconds = common.median_seconds(one_by_one, own.repeats) / count
        if count > 1:
            shared = common.median_seconds(lambda: solve(factor(encoder), stacked), own.repeats)
            also["factored once for all images"] = shared / count
    common.print_times(f"torch {torch.__version__}", seconds, also)


if __name__ == "__main__":
    main()

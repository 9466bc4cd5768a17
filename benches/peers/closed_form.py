"""Times the closed form of `trading` (Table 1) in PyTorch on the CPU: 256x256 points, 3 channels, f32.

Prints one JSON object of medians in seconds:
  one_image_s               encode, torch.linalg.lstsq(Psi, I), two products per channel
  per_image_of_16_s         the same for each of 16 images, as the authors' scripts do it
  shared_per_image_of_16_s  encode and lstsq once, all 48 channels in one batched product
`cargo xtask bench closed-form` runs this program beside our code, in turn, and prints the ratios.
"""

import argparse
import json
import statistics
import time

import torch

SIDE, CHANNELS, IMAGES = 256, 3, 16


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


def median(repeats: int, run) -> float:
    """Median wall time in seconds, after one run that is not counted."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9, help="counted runs; at least 5")
    parser.add_argument("--encoder", choices=["gau", "tri"], default="gau")
    arguments = parser.parse_args()
    if arguments.repeats < 5:
        parser.error("--repeats must be at least 5")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    images = torch.rand(IMAGES, CHANNELS, SIDE, SIDE)
    stacked = images.reshape(IMAGES * CHANNELS, SIDE, SIDE)
    encoder = arguments.encoder

    def one_by_one():
        for image in images:
            solve(factor(encoder), image)

    with torch.no_grad():
        one = median(arguments.repeats, lambda: solve(factor(encoder), images[0]))
        sixteen = median(arguments.repeats, one_by_one)
        shared = median(arguments.repeats, lambda: solve(factor(encoder), stacked))
    print(
        json.dumps(
            {
                "implementation": f"torch {torch.__version__}",
                "encoder": encoder,
                "threads": arguments.threads,
                "repeats": arguments.repeats,
                "one_image_s": round(one, 6),
                "per_image_of_16_s": round(sixteen / IMAGES, 6),
                "shared_per_image_of_16_s": round(shared / IMAGES, 6),
            }
        )
    )


if __name__ == "__main__":
    main()

"""Examples of least squares with the ranks and solutions of LAPACK's xGELSY.

python benches/peers/gelsy_examples.py > crates/posenc-math/tests/data/gelsy_examples.json
"""

import json

import numpy
import scipy
from scipy.linalg.lapack import dgelsy


def fourier(n, k, last):
    """K/2 sines and then K/2 cosines of frequencies from 1 to `last`."""
    angles = 2 * numpy.pi * numpy.linspace(1, last, k // 2) * numpy.arange(n)[:, None] / n
    return numpy.hstack([numpy.sin(angles), numpy.cos(angles)])


def solve(psi, rcond, fixed):
    """Columns with a nonzero entry in `jptv` stay in front, in their order."""
    n, k = psi.shape
    right = (numpy.arange(n) ** 2 % 7 - 3.0)[:, None]
    right = numpy.vstack([right, numpy.zeros((max(k - n, 0), 1))])
    order = numpy.full(k, int(fixed), dtype=numpy.int32)
    _, x, _, rank, _ = dgelsy(psi, right, order, rcond, 10 * (n + k))
    return {"rank": int(rank), "solution": x[:k, 0].tolist()}


def example(psi, rcond):
    psi = numpy.array(psi, dtype=float)
    return {"psi": psi.tolist(), "rcond": rcond, "pivoted": solve(psi, rcond, False), "fixed": solve(psi, rcond, True)}


rank_two = [[1, 2, 3, 4], [2, 4, 6, 8], [1, 0, 1, 0], [0, 2, 2, 4], [3, 2, 5, 4]]
hilbert = lambda n, k: 1 / (numpy.arange(n)[:, None] + numpy.arange(k) + 1)
examples = [
    example(rank_two, 1e-6),
    example(hilbert(8, 6), 1e-4),
    example(hilbert(5, 8), 1e-3),
    example(fourier(12, 12, 3), 1e-3),
]
print(json.dumps({"scipy": scipy.__version__, "examples": examples}))

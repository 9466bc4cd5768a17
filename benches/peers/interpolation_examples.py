"""Examples of interpolation with the values that SciPy gives.

python benches/peers/interpolation_examples.py > crates/posenc-math/tests/data/interpolation_examples.json
"""

import importlib.metadata
import json
import sys

import numpy
from scipy.interpolate import (
    CloughTocher2DInterpolator,
    LinearNDInterpolator,
    NearestNDInterpolator,
    RBFInterpolator,
    RegularGridInterpolator,
)
from scipy.sparse.linalg import spsolve
from scipy.spatial import Delaunay


def smooth(x):
    """Two channels."""
    x = x / 8
    first = numpy.sin(3 * x).sum(-1) + 0.3 * x.prod(-1)
    second = numpy.cos(2 * x[..., 0] + x[..., -1]) + (x[..., 0] > 0.5)
    return numpy.stack([first, second], -1)


def rounded(values):
    return [float(f"{v:.10g}") for v in numpy.asarray(values).ravel()]


def grid(rng, sides, step):
    """Every `step`-th node of a lattice is known; positions beyond the last one move to it."""
    known = [numpy.arange(0, side, step) for side in sides]
    values = smooth(numpy.stack(numpy.meshgrid(*known, indexing="ij"), -1).astype(float))
    values += 0.05 * rng.normal(size=values.shape)
    nodes = numpy.stack(numpy.meshgrid(*map(numpy.arange, sides), indexing="ij"), -1)
    nodes = numpy.minimum(nodes, [k[-1] for k in known])
    # The default solver of the spline's equations is iterative and stops at 1e-5.
    methods = {"nearest": {}, "linear": {}, "cubic": {"solver": spsolve}}
    expected = {
        method: rounded(RegularGridInterpolator(known, values, method=method, **options)(nodes))
        for method, options in methods.items()
    }
    return {"sides": sides, "step": step, "known": rounded(values), **expected}


def scattered(rng, dimensions, samples, queries, neighbors):
    positions = rng.uniform(0, 8, (samples, dimensions))
    values = smooth(positions) + 0.05 * rng.normal(size=(samples, 2))
    query = rng.uniform(0, 8, (queries, dimensions))
    if dimensions == 2:
        inside = Delaunay(positions).find_simplex(query) >= 0
        query = query[inside]
    kernel = "thin_plate_spline" if dimensions == 2 else "linear"
    rbf = dict(kernel=kernel, degree=1)
    expected = {
        "nearest": NearestNDInterpolator(positions, values)(query),
        "thin_plate": RBFInterpolator(positions, values, **rbf)(query),
        "thin_plate_local": RBFInterpolator(positions, values, neighbors=neighbors, **rbf)(query),
    }
    if dimensions == 2:
        expected["linear"] = LinearNDInterpolator(positions, values)(query)
        expected["cubic"] = CloughTocher2DInterpolator(positions, values)(query)
    return {
        "positions": rounded(positions),
        "values": rounded(values),
        "queries": rounded(query),
        "neighbors": neighbors,
        **{name: rounded(v) for name, v in expected.items()},
    }


rng = numpy.random.default_rng(0)
json.dump(
    {
        "scipy": importlib.metadata.version("scipy"),
        "grids": [grid(rng, [16, 13], 2), grid(rng, [17, 14], 3), grid(rng, [8, 9, 8], 2)],
        "planes": [scattered(rng, 2, 40, 60, 12), scattered(rng, 2, 120, 40, 20)],
        "spaces": [scattered(rng, 3, 50, 25, 16)],
    },
    sys.stdout,
    separators=(",", ":"),
)
print()

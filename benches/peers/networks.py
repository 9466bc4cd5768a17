"""Times one full-batch Adam step of the coordinate networks of `rethinking` and `trading`.

PyTorch: an `nn.Sequential`, `MSELoss`, `torch.optim.Adam`. JAX: one jitted step with `optax.adam`. Both
in f32 with L2 weight decay, on embedded positions computed beforehand, as the authors' notebooks do it.

Seconds per step: error, gradient, Adam. On the CPU with as many threads as asked for; with --device cuda PyTorch alone,
without TF32.
"""

import math
import os
import random

import common

COLUMNS = 20
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 1e-8
# Points, widths from the input to the last hidden layer, outputs, embedding.
WORKLOADS = {
    "simple-2d": (65536, [512, 256, 256, 256, 256], 3, "rff-2d"),
    "simple-2d-grid": (65536, [512, 256, 256, 256, 256], 3, "rff-grid"),
    "simple-2d-band": (65536, [512, 256, 256, 256, 256], 3, "gaussian-2d"),
    "linear-1d": (256, [10000], 1, "rff-1d"),
    "linear-1d-band": (256, [10000], 1, "gaussian-1d"),
    "mlp-1d": (256, [256, 256, 256, 256, 256], 1, "rff-1d"),
}
ONE_DIMENSIONAL = ["linear-1d", "linear-1d-band", "mlp-1d"]

# Points and features per axis, axes, outputs, embedding of each axis and its parameter.
COMPLEX = {
    "complex-2d": (256, 256, 2, 3, "linf", 4.5),
    "complex-2d-band": (256, 256, 2, 3, "gaussian", 0.004),
    "complex-2d-tri": (256, 256, 2, 3, "triangle", 2 / 256),
    "complex-3d": (64, 64, 3, 3, "linf", 3.0),
    "complex-3d-band": (64, 64, 3, 3, "gaussian", 0.015),
    "complex-3d-tri": (64, 64, 3, 3, "triangle", 2 / 64),
}


def axis_features(lib, kind: str, parameter: float, points: int, dimension: int):
    """Features of one axis (points x dimension), scaled by the largest norm of a row."""
    x = lib.asarray([i / points for i in range(points)])[:, None]
    centers = lib.asarray([j / dimension for j in range(dimension)])
    if kind == "linf":
        half = dimension // 2
        frequencies = [1 + (2**parameter - 1) * j / (half - 1) for j in range(half)]
        angles = 2 * math.pi * x * lib.asarray(frequencies)
        features = lib.concatenate((lib.sin(angles), lib.cos(angles)), -1)
    elif kind == "gaussian":
        features = lib.exp(-((centers - x) ** 2) / (2 * parameter**2))
    else:
        features = 1 - abs(centers - x) / parameter
        features = features * (features > 0)
    return features / (features**2).sum(-1).max() ** 0.5


def products(psi, weights, axes: int):
    """Outputs on the whole grid, channel by channel, from the same features on every axis."""
    if axes == 2:
        return psi @ weights @ psi.T
    channels, k = weights.shape[:2]
    leading = psi @ weights.reshape(channels, k, k * k)
    return psi @ leading.reshape(channels, psi.shape[0], k, k) @ psi.T


def inputs(lib, kind: str, points: int, dimension: int):
    """Features (points x dimension), scaled by the largest norm of a row.

    `lib` is torch or jax.numpy, which share the names used here.
    """
    features = embed(lib, kind, points, dimension)
    return features / (features**2).sum(-1).max() ** 0.5


def embed(lib, kind: str, points: int, dimension: int):
    """Features as they are.

    Time depends on the values only through how many vanish, so any draw will do.
    """
    draw = random.Random(0)
    line = [i / points for i in range(points)]
    side = math.isqrt(points)
    grid = [[i / side, j / side] for i in range(side) for j in range(side)]
    scattered = [[draw.random(), draw.random()] for _ in range(points)]
    normal = [draw.gauss(0, 1) for _ in range(dimension)]
    half = dimension // 2

    def waves(angles):
        return lib.concatenate((lib.sin(2 * math.pi * angles), lib.cos(2 * math.pi * angles)), -1)

    def bumps(x, count, sigma):
        centers = lib.asarray([j / count for j in range(count)])
        return lib.exp(-((centers - x[:, None]) ** 2) / (2 * sigma**2))

    if kind == "rff-2d":
        frequencies = lib.asarray([normal[:half], normal[half:]]) * 14.0
        return waves(lib.asarray(scattered) @ frequencies)
    if kind == "rff-grid":
        x, frequencies = lib.asarray(grid), lib.asarray(normal[: half // 2]) * 14.0
        return lib.concatenate([waves(x[:, axis, None] * frequencies) for axis in (0, 1)], -1)
    if kind == "gaussian-2d":
        x = lib.asarray(scattered)
        return lib.concatenate([bumps(x[:, axis], half, 0.006) for axis in (0, 1)], -1)
    if kind == "rff-1d":
        return waves(lib.asarray(line)[:, None] * lib.asarray(normal[:half]) * 20.0)
    return bumps(lib.asarray(line), dimension, 0.002)


def targets(lib, points: int, outputs: int):
    """Smooth targets in [0, 1], points x outputs."""
    rows = [
        [0.5 + 0.4 * math.sin(0.02 * i + o) for o in range(outputs)] for i in range(points)
    ]
    return lib.asarray(rows)


def use_torch(device: str, threads: int):
    """PyTorch with everything on `device`, and what waits until that has done its work."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    torch.set_default_device(device)
    if device != "cuda":
        return torch, f"torch {torch.__version__}", lambda: None
    # Full single precision, as in our kernels and in the papers' formulas.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    name = f"torch {torch.__version__} on {torch.cuda.get_device_name()}, TF32 off"
    return torch, name, torch.cuda.synchronize


def torch_complex_step(workload: str, threads: int, device: str):
    """As `torch_step`, for a Kronecker layer as the authors write it."""
    torch, name, wait = use_torch(device, threads)
    points, dimension, axes, outputs, kind, parameter = COMPLEX[workload]
    psi = axis_features(torch, kind, parameter, points, dimension)
    y = torch.rand(outputs, *[points] * axes)
    limit = 1 / math.sqrt(outputs)
    weights = torch.nn.Parameter(torch.empty(outputs, *[dimension] * axes).uniform_(-limit, limit))
    optimizer = torch.optim.Adam([weights], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    error = torch.nn.MSELoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        error(products(psi, weights, axes), y).backward()
        optimizer.step()

    return name, step, wait


def torch_step(workload: str, columns: int, threads: int, device: str):
    """The implementation in words, a function that does one step, and one that waits for it."""
    torch, name, wait = use_torch(device, threads)
    points, widths, outputs, kind = WORKLOADS[workload]
    x = inputs(torch, kind, points, widths[0])
    y = targets(torch, points, outputs * columns)
    layers = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], outputs * columns))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    error = torch.nn.MSELoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        error(model(x), y).backward()
        optimizer.step()

    return name, step, wait


def cuda_gemm_gflops() -> float:
    """f32 products of 4096 x 4096 matrices on the GPU, without TF32, in GFLOP/s."""
    torch, _, wait = use_torch("cuda", 1)
    n = 4096
    a, b = torch.rand(n, n), torch.rand(n, n)
    return 2 * n**3 / common.median_seconds(lambda: a @ b, 5, wait) / 1e9


def jax_step(workload: str, columns: int):
    """As `torch_step`; JAX takes its threads from the cores the process may use."""
    import jax
    import jax.numpy as jnp
    import optax

    points, widths, outputs, kind = WORKLOADS[workload]
    x = inputs(jnp, kind, points, widths[0])
    y = targets(jnp, points, outputs * columns)
    shapes = list(zip(widths, widths[1:] + [outputs * columns]))
    parameters = []
    for key, (fan_in, fan_out) in zip(jax.random.split(jax.random.key(0), len(shapes)), shapes):
        limit = 1 / math.sqrt(fan_in)
        weights = jax.random.uniform(key, (fan_in, fan_out), minval=-limit, maxval=limit)
        parameters.append((weights, jnp.zeros(fan_out)))

    def error(parameters, x, y):
        for weights, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weights + bias)
        weights, bias = parameters[-1]
        return jnp.mean((x @ weights + bias - y) ** 2)

    name = f"jax {jax.__version__}, optax {optax.__version__}"
    return name, jitted_step(error, parameters, x, y), lambda: None


def jax_complex_step(workload: str):
    """As `torch_complex_step`."""
    import jax
    import jax.numpy as jnp
    import optax

    points, dimension, axes, outputs, kind, parameter = COMPLEX[workload]
    psi = axis_features(jnp, kind, parameter, points, dimension)
    key, other = jax.random.split(jax.random.key(0))
    y = jax.random.uniform(other, (outputs, *[points] * axes))
    limit = 1 / math.sqrt(outputs)
    weights = jax.random.uniform(
        key, (outputs, *[dimension] * axes), minval=-limit, maxval=limit
    )

    def error(weights, psi, y):
        return jnp.mean((products(psi, weights, axes) - y) ** 2)

    name = f"jax {jax.__version__}, optax {optax.__version__}"
    return name, jitted_step(error, weights, psi, y), lambda: None


def jitted_step(error, parameters, x, y):
    """A function that does one step of Adam on `error(parameters, x, y)` and waits for it."""
    import jax
    import optax

    optimizer = optax.chain(
        optax.add_decayed_weights(WEIGHT_DECAY), optax.adam(LEARNING_RATE)
    )

    def update(parameters, state, x, y):
        gradient = jax.grad(error)(parameters, x, y)
        changes, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, changes), state

    jitted = jax.jit(update, donate_argnums=(0, 1))
    now = (parameters, optimizer.init(parameters))

    def step():
        nonlocal now
        now = jax.block_until_ready(jitted(*now, x, y))

    return step


def measure(own, columns: int):
    """The implementation in words, and seconds per step."""
    if own.workload in COMPLEX and own.framework == "torch":
        made = torch_complex_step(own.workload, own.threads, own.device)
    elif own.workload in COMPLEX:
        made = jax_complex_step(own.workload)
    elif own.framework == "torch":
        made = torch_step(own.workload, columns, own.threads, own.device)
    else:
        made = jax_step(own.workload, columns)
    name, step, wait = made
    return name, common.median_seconds(step, own.repeats, wait)


def work(own) -> None:
    """What a process with cores of its own does."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if own.threads == 1:
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    name, seconds = measure(own, 1)
    also = {}
    if own.workload.startswith("linear"):
        also["20 columns in one step"] = measure(own, COLUMNS)[1] / COLUMNS
    common.print_times(name, seconds, also, cuda_gemm_gflops() if own.device == "cuda" else None)


def main() -> None:
    own = common.arguments(
        __doc__, [*WORKLOADS, *COMPLEX], frameworks=("torch", "jax"), devices=("cpu", "cuda")
    )
    if own.worker is not None:
        return work(own)
    times = common.workers(own, 1, own.threads)
    is_1d = own.workload in ONE_DIMENSIONAL
    # Waiting threads that spin are faster on an idle machine and much slower on a busy one; the better counts.
    is_short = own.device == "cpu" and own.threads > 1 and (is_1d or own.workload in COMPLEX)
    if own.framework == "torch" and is_short:
        times += common.workers(own, 1, own.threads, OMP_WAIT_POLICY="PASSIVE")
    also = {label: min(t["also"][label] for t in times) for label in times[0]["also"]}
    if is_1d and own.threads > 1 and own.device == "cpu":
        # One process on each core, as our sessions.
        also["one process on each core"] = common.together(common.workers(own, own.threads, 1))
    seconds = min(t["seconds"] for t in times)
    common.print_times(times[0]["implementation"], seconds, also, times[0]["gemm_gflops"])


if __name__ == "__main__":
    main()

"""Makes the stored example with which the public captioner is compared.

A small captioner is written as google-research's `widget_caption` has it (Keras), in PyTorch: words and rows of tables are looked
up before they go through dense layers, texts are filled up and masked, convolutions have the borders of TensorFlow's `same`,
attention on one slot is attention. Weights come from a formula that the test has, too. Stored are the screens and what comes out in
double precision.

    python widget_examples.py crates/posenc-attention/tests/data

needs torch.
"""

import json
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

VOCABULARY, WORD, TYPES, ROWS, WIDTH, HEADS, HIDDEN, LAYERS = 12, 6, 12, 5, 8, 2, 12, 2
CHANNELS, KERNELS, SIDE = [2, 3, 4], [[5, 3, 5], [5, 3, 3], [3, 3, 3]], 8
START = 3


def noise(k):
    """Between -1/2 and 1/2, from a whole number."""
    k = (k * 2654435761 + 12345) % 2**32
    k ^= k >> 15
    k = (k * 739982445) % 2**32
    k ^= k >> 13
    return k / 2**32 - 0.5


NAMES = []


def add(name, *shape):
    NAMES.append((name, shape))


def dense(name, inputs, outputs):
    add(name + ".weights", inputs, outputs), add(name + ".bias", outputs)


def norm(name, width=WIDTH):
    add(name + ".gain", width), add(name + ".shift", width)


def attention(name):
    for part in ["query", "key", "value", "output"]:
        add(f"{name}.{part}", WIDTH, WIDTH)


def embedded(name, rows):
    add(name + ".table", rows, WIDTH), dense(name, WIDTH, WIDTH)


dense("words", WORD, WIDTH)
embedded("kinds", TYPES)
embedded("clickable", 2)
for i in range(3):
    embedded(f"tree{i}", ROWS)
for i in range(4):
    add(f"position{i}.table", 100, WIDTH)
for i in range(4):
    dense(f"position{i}", WIDTH, WIDTH)
dense("node", 6 * WIDTH, WIDTH)
for i in range(LAYERS):
    norm(f"encoder{i}.own"), attention(f"encoder{i}.own")
    norm(f"encoder{i}.dense"), dense(f"encoder{i}.up", WIDTH, HIDDEN), dense(f"encoder{i}.down", HIDDEN, WIDTH)
norm("encoder")
inputs = 1
for s, outputs in enumerate(CHANNELS):
    for c in range(3):
        out = outputs if c == 2 else inputs
        dense(f"stage{s}.{c}", KERNELS[s][c] ** 2 * inputs, out)
        norm(f"stage{s}.{c}.norm", out), add(f"stage{s}.{c}.mean", out), add(f"stage{s}.{c}.variance", out)
    inputs = outputs
dense("fusion", CHANNELS[-1] + WIDTH, WIDTH)
for i in range(LAYERS):
    norm(f"decoder{i}.own"), attention(f"decoder{i}.own")
    norm(f"decoder{i}.memory"), attention(f"decoder{i}.memory")
    norm(f"decoder{i}.dense"), dense(f"decoder{i}.up", WIDTH, HIDDEN), dense(f"decoder{i}.down", HIDDEN, WIDTH)
norm("decoder")
dense("output", WIDTH, VOCABULARY)

P, U, offset = {}, {}, 0
for name, shape in NAMES:
    count = torch.Size(shape).numel()
    u = torch.tensor([noise(offset + k) for k in range(count)], dtype=torch.float64).reshape(shape)
    U[name] = u
    value = 1 + 0.4 * u if name.endswith((".gain", ".variance")) else 0.6 * u
    # In Rust they are numbers of 32 bits.
    P[name] = value.float().double().requires_grad_(not name.endswith((".mean", ".variance")))
    offset += count
VECTORS = torch.tensor([[0.7 * noise(10**6 + WORD * r + c) for c in range(WORD)] for r in range(VOCABULARY)]).float().double()


def apply(name, x):
    return x @ P[name + ".weights"] + P[name + ".bias"]


def layer_norm(name, x):
    return F.layer_norm(x, x.shape[-1:], P[name + ".gain"], P[name + ".shift"], 1e-6)


def look_up(name, at):
    return apply(name, P[name + ".table"][at])


def attend(name, x, on, bias):
    split = lambda y: y.reshape(*y.shape[:2], HEADS, -1).transpose(1, 2)
    q, k, v = split(x @ P[name + ".query"]), split(on @ P[name + ".key"]), split(on @ P[name + ".value"])
    scores = (q * (WIDTH // HEADS) ** -0.5) @ k.transpose(2, 3) + bias
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
    return y @ P[name + ".output"]


def feed_forward(name, x):
    return apply(name + ".down", F.relu(apply(name + ".up", x)))


def embed(words):
    return apply("words", VECTORS[words])


def pooled(texts):
    words = torch.tensor(texts)
    x = embed(words) + ((words < 2).double() * -1e7)[..., None]
    x = x.amax(-2)
    return torch.where(x < -1e6, torch.zeros_like(x), x)


def convolution(name, x, side, stride, training):
    n = x.shape[-1]
    total = max((-(-n // stride) - 1) * stride + side - n, 0)
    x = F.pad(x, (total // 2, total - total // 2) * 2)
    weights = P[name + ".weights"]
    weights = weights.reshape(side, side, -1, weights.shape[1]).permute(3, 2, 0, 1)
    x = F.conv2d(x, weights, P[name + ".bias"], stride)
    mean, variance = P[name + ".mean"], P[name + ".variance"]
    return F.batch_norm(x, mean, variance, P[name + ".norm.gain"], P[name + ".norm.shift"], training, 0.01, 1e-3)


def pixels(x, training):
    for s in range(len(CHANNELS)):
        y = F.relu(convolution(f"stage{s}.0", x, KERNELS[s][0], 1, training))
        y = F.relu(convolution(f"stage{s}.1", y, KERNELS[s][1], 1, training) + x)
        x = F.relu(convolution(f"stage{s}.2", y, KERNELS[s][2], 2, training))
    return x.reshape(len(x), -1)


def places(t):
    half = WIDTH // 2
    wave = torch.exp(-torch.arange(half, dtype=torch.float64) * (torch.log(torch.tensor(1e4, dtype=torch.float64)) / (half - 1)))
    phase = torch.arange(t, dtype=torch.float64)[:, None] * wave
    return torch.cat([phase.sin(), phase.cos()], 1)


def say(screens, training):
    most = max(len(s["nodes"]) for s in screens)
    ten = lambda words: (words + [0] * 10)[:10]
    empty = {"text": [], "resource": [], "kind": 0, "clickable": 0, "tree": [0, 0, 0], "bounds": [0, 0, 0, 0]}
    nodes = [s["nodes"] + [empty] * (most - len(s["nodes"])) for s in screens]
    column = lambda key: torch.tensor([[node[key] for node in own] for own in nodes])
    texts = [pooled([[ten(node[key]) for node in own] for own in nodes]) for key in ["text", "resource"]]
    tree, bounds = column("tree"), column("bounds").double().floor().long()
    tree = torch.where(tree >= ROWS, 0, tree)
    position = sum(look_up(f"position{i}", bounds[..., i]) for i in range(4))
    parts = texts + [look_up("kinds", column("kind")), position, look_up("clickable", column("clickable"))]
    parts.append(sum(look_up(f"tree{i}", tree[..., i]) for i in range(3)))
    x = F.relu(apply("node", torch.cat(parts, -1)))
    bias = torch.tensor([[0.0 if i < len(s["nodes"]) else -1e9 for i in range(most)] for s in screens]).double()[:, None, None]
    for i in range(LAYERS):
        y = layer_norm(f"encoder{i}.own", x)
        x = x + attend(f"encoder{i}.own", y, y, bias)
        x = x + feed_forward(f"encoder{i}", layer_norm(f"encoder{i}.dense", x))
    x = layer_norm("encoder", x)
    widgets = [(i, w) for i, s in enumerate(screens) for w in s["widgets"]]
    own = torch.stack([x[i, w["node"]] for i, w in widgets])
    levels = [[(k * 37 + n * 101 + k * k // 7) % 256 for k in range(SIDE**2)] for n in range(len(widgets))]
    pictures = torch.tensor(levels, dtype=torch.float64).reshape(-1, 1, SIDE, SIDE) / 255
    memory = F.relu(apply("fusion", torch.cat([pixels(pictures, training), own], -1)))[:, None]
    t = max(len(w["caption"]) for _, w in widgets) + 1
    said = torch.tensor([(w["caption"] + [1] + [0] * t)[:t] for _, w in widgets])
    x = F.pad(embed(said), (0, 0, 1, 0))[:, :-1] + places(t)
    causal = torch.triu(torch.full((t, t), -1e9, dtype=torch.float64), 1)
    for i in range(LAYERS):
        y = layer_norm(f"decoder{i}.own", x)
        x = x + attend(f"decoder{i}.own", y, y, causal)
        x = x + attend(f"decoder{i}.memory", layer_norm(f"decoder{i}.memory", x), memory, torch.zeros(1))
        x = x + feed_forward(f"decoder{i}", layer_norm(f"decoder{i}.dense", x))
    said_log = apply("output", layer_norm("decoder", x)).log_softmax(-1)
    per_word = -said_log.gather(2, said[..., None])[..., 0] * (said > 0)
    return per_word, per_word.sum() / (said > 0).sum()


def main():
    node = lambda text, resource, kind, clickable, tree, bounds: dict(
        text=text, resource=resource, kind=kind, clickable=clickable, tree=tree, bounds=bounds
    )
    screens = [
        {
            "nodes": [
                node([4, 5, 2], [], 4, 0, [1, 1, 3], [0, 0, 99, 99]),
                node([], [6], 1, 1, [2, 2, 1], [3.7, 12.2, 40.9, 20.1]),
                node([7, 7, 8, 4, 9, 10, 11, 5, 6, 4, 3, 3], [9, 10], 2, 1, [2, 3, 2], [50.5, 60, 98.99, 75]),
            ],
            "widgets": [{"node": 1, "caption": [5, 6]}, {"node": 2, "caption": [7, 4, 11, 8]}],
        },
        {
            "nodes": [
                node([], [], 4, 0, [1, 1, 5], [0, 0, 99, 99]),
                node([10, 4], [4], 3, 1, [2, 2, 2], [1, 2, 30, 40]),
                node([2], [0, 1], 11, 0, [3, 3, 1], [1.5, 2.5, 3.5, 4.5]),
                node([], [8, 11], 5, 1, [2, 4, 4], [10, 80, 20, 90]),
                node([5], [5], 6, 0, [7, 9, 3], [80, 10, 90, 20]),
            ],
            "widgets": [{"node": 3, "caption": [9, 10, 4]}],
        },
    ]
    with torch.no_grad():
        evaluated, _ = say(screens, False)
    said, loss = say(screens, True)
    loss.backward()
    zero = torch.zeros(())
    gradient = lambda name: zero if P[name].grad is None else P[name].grad
    result = {
        "versions": {"torch": torch.__version__},
        "screens": screens,
        "evaluated": evaluated.flatten().tolist(),
        "said": said.flatten().tolist(),
        "loss": loss.item(),
        "parameters": offset,
        "gradients": [[name, gradient(name).norm().item(), (gradient(name) * U[name]).sum().item()] for name, _ in NAMES],
        "running": [P[name].flatten().tolist() for name, _ in NAMES if name.endswith((".mean", ".variance"))],
    }
    (Path(sys.argv[1]) / "widget.json").write_text(json.dumps(result))


main()

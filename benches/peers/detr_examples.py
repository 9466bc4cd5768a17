"""Makes the stored example that the detector at the paper's scale is held against.

A small DETR on a small residual network is built as facebookresearch/detr and torchvision build theirs (names of all
arrays, post-norm layers, sine codes of masks, losses with auxiliary ones), given random weights, and run in double
precision on two images of different size. Stored are the weights, as `torch.save` writes them and the network's alone as
safetensors, and what comes out.

    python detr_examples.py crates/posenc-attention/tests/data

needs torch, scipy and safetensors.
"""

import json
import math
import sys
from pathlib import Path

import scipy
import torch
from safetensors.torch import save_file
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.nn import functional as F

CHANNELS, BLOCKS = 2, [1, 2, 1, 1]
WIDTH, HEADS, HIDDEN, LAYERS, QUERIES, CLASSES = 16, 2, 24, [1, 2], 5, 4


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, n):
        super().__init__()
        for name in ["weight", "bias", "running_mean", "running_var"]:
            self.register_buffer(name, torch.ones(n))

    def forward(self, x):
        w, b, m, v = (t.reshape(1, -1, 1, 1) for t in (self.weight, self.bias, self.running_mean, self.running_var))
        scale = w * (v + 1e-5).rsqrt()
        return x * scale + b - m * scale


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, inner, 1, bias=False)
        self.bn1 = FrozenBatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = FrozenBatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, 4 * inner, 1, bias=False)
        self.bn3 = FrozenBatchNorm2d(4 * inner)
        self.downsample = downsample

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, CHANNELS, 7, 2, 3, bias=False)
        self.bn1 = FrozenBatchNorm2d(CHANNELS)
        inputs = CHANNELS
        for stage, count in enumerate(BLOCKS):
            inner, blocks = CHANNELS << stage, []
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                down = None
                if block == 0:
                    conv = nn.Conv2d(inputs, 4 * inner, 1, stride, bias=False)
                    down = nn.Sequential(conv, FrozenBatchNorm2d(4 * inner))
                blocks.append(Bottleneck(inputs, inner, stride, down))
                inputs = 4 * inner
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return x


def sine_code(mask):
    valid = ~mask
    y, x = (valid.cumsum(axis, dtype=torch.float64) for axis in (1, 2))
    y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
    x = x / (x[:, :, -1:] + 1e-6) * 2 * math.pi
    half = WIDTH // 2
    t = torch.arange(half, dtype=torch.float64)
    t = 10000 ** (2 * torch.div(t, 2, rounding_mode="floor") / half)

    def one(at):
        p = at[..., None] / t
        return torch.stack((p[..., 0::2].sin(), p[..., 1::2].cos()), dim=4).flatten(3)

    return torch.cat((one(y), one(x)), dim=3)


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, code, mask):
        at = x + code
        x = self.norm1(x + self.self_attn(at, at, x, key_padding_mask=mask)[0])
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.multihead_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, queries, memory, code, mask):
        at = x + queries
        x = self.norm1(x + self.self_attn(at, at, x)[0])
        y = self.multihead_attn(x + queries, memory + code, memory, key_padding_mask=mask)[0]
        x = self.norm2(x + y)
        return self.norm3(x + self.linear2(F.relu(self.linear1(x))))


class Layers(nn.Module):
    def __init__(self, layers, norm):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if norm:
            self.norm = nn.LayerNorm(WIDTH)


class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Module()
        self.transformer.encoder = Layers([EncoderLayer() for _ in range(LAYERS[0])], False)
        self.transformer.decoder = Layers([DecoderLayer() for _ in range(LAYERS[1])], True)
        self.class_embed = nn.Linear(WIDTH, CLASSES + 1)
        self.bbox_embed = nn.Module()
        self.bbox_embed.layers = nn.ModuleList([nn.Linear(WIDTH, n) for n in (WIDTH, WIDTH, 4)])
        self.query_embed = nn.Embedding(QUERIES, WIDTH)
        body = Body()
        self.input_proj = nn.Conv2d(4 * (CHANNELS << 3), WIDTH, 1)
        self.backbone = nn.ModuleList([nn.Module()])
        self.backbone[0].body = body

    def forward(self, images, mask):
        features = self.backbone[0].body(images)
        mask = F.interpolate(mask[None].float(), size=features.shape[-2:])[0].to(torch.bool)
        code, mask = sine_code(mask).flatten(1, 2), mask.flatten(1)
        x = self.input_proj(features).flatten(2).transpose(1, 2)
        for layer in self.transformer.encoder.layers:
            x = layer(x, code, mask)
        queries = self.query_embed.weight[None].expand(len(x), -1, -1)
        y, said = torch.zeros_like(queries), []
        for layer in self.transformer.decoder.layers:
            y = layer(y, queries, x, code, mask)
            out = self.transformer.decoder.norm(y)
            box = out
            for i, dense in enumerate(self.bbox_embed.layers):
                box = F.relu(dense(box)) if i < 2 else dense(box)
            said.append((self.class_embed(out), box.sigmoid()))
        return said


def corners(b):
    c, h = b[..., :2], b[..., 2:] / 2
    return torch.cat([c - h, c + h], -1)


def generalized(a, b):
    a, b = corners(a)[:, None], corners(b)[None]
    area = lambda t: (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    size = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    inter = size[..., 0] * size[..., 1]
    union = area(a) + area(b) - inter
    whole = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    whole = whole[..., 0] * whole[..., 1]
    return inter / union - (whole - union) / whole


def loss_of(said, targets):
    things, total = sum(len(t) for t in targets), 0
    weight = torch.ones(CLASSES + 1, dtype=torch.float64)
    weight[-1] = 0.1
    for logits, boxes in said:
        wanted = torch.full(logits.shape[:2], CLASSES)
        for image, target in enumerate(targets):
            labels = torch.tensor([int(t[0]) for t in target])
            places = torch.tensor([t[1:] for t in target], dtype=torch.float64)
            p, b = logits[image].softmax(-1), boxes[image]
            cost = 5 * torch.cdist(b, places, p=1) - p[:, labels] - 2 * generalized(b, places)
            rows, columns = linear_sum_assignment(cost.detach())
            wanted[image, rows] = labels[columns]
            own, other = b[rows], places[columns]
            total = total + 5 * (own - other).abs().sum() / things
            total = total + 2 * (1 - generalized(own, other).diag()).sum() / things
        total = total + F.cross_entropy(logits.transpose(1, 2), wanted, weight)
    return total


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    model = Detr()
    for name, buffer in model.named_buffers():
        buffer.copy_(torch.rand_like(buffer) * 0.6 + 0.6 if "mean" not in name and "bias" not in name else torch.randn_like(buffer) * 0.2)
    torch.save({"model": model.state_dict(), "epoch": 3}, out / "detr.pth")
    body = {k: v.contiguous() for k, v in model.backbone[0].body.state_dict().items()}
    save_file(body, out / "network.safetensors")
    model = model.double()
    sizes, means, deviations = [[64, 96], [75, 50]], [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    height, width = (max(s[axis] for s in sizes) for axis in (0, 1))
    images = torch.zeros(2, 3, height, width, dtype=torch.float64)
    mask = torch.ones(2, height, width, dtype=torch.bool)
    for i, (h, w) in enumerate(sizes):
        numbers = torch.arange(h * w * 3, dtype=torch.float64)
        pixels = 0.5 + 0.5 * torch.sin(0.037 * numbers + i)
        pixels = (pixels.reshape(h, w, 3) - torch.tensor(means)) / torch.tensor(deviations)
        images[i, :, :h, :w] = pixels.permute(2, 0, 1)
        mask[i, :h, :w] = False
    targets = [[[1, 0.4, 0.5, 0.3, 0.4], [3, 0.7, 0.2, 0.2, 0.3]], [[0, 0.5, 0.6, 0.8, 0.5]]]
    said = model(images, mask)
    loss = loss_of(said, targets)
    loss.backward()
    parameters = dict(model.named_parameters())
    names = ["backbone.0.body.layer2.0.conv2.weight", "backbone.0.body.layer4.0.downsample.0.weight", "input_proj.weight", "query_embed.weight"]
    result = {
        "versions": {"torch": torch.__version__, "scipy": scipy.__version__},
        "sizes": sizes,
        "targets": targets,
        "classes": [s[0].flatten().tolist() for s in said],
        "boxes": [s[1].flatten().tolist() for s in said],
        "loss": loss.item(),
        "gradient_lengths": {n: parameters[n].grad.norm().item() for n in names},
    }
    (out / "detr.json").write_text(json.dumps(result))


main()

"""Examples of detections with the average precision that pycocotools gives them.

python benches/peers/coco_examples.py > crates/posenc-math/tests/data/coco_examples.json
"""

import contextlib
import importlib.metadata
import io
import json
import sys

import numpy
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def example(seed, images, categories, things, noise, crowds, ties):
    rng = numpy.random.default_rng(seed)
    truths, detections = [], []
    for image in range(1, images + 1):
        for _ in range(rng.integers(0, things + 1)):
            side = float(2 ** rng.uniform(3, 8))
            box = [*rng.uniform(0, 300, 2), side * rng.uniform(0.5, 2), side * rng.uniform(0.5, 2)]
            box = [round(float(v), 2) for v in box]
            category = int(rng.integers(1, categories + 1))
            crowd = int(rng.uniform() < crowds)
            area = round(box[2] * box[3] * float(rng.uniform(0.4, 1)), 3)
            truths.append(
                {"id": len(truths) + 1, "image_id": image, "category_id": category, "bbox": box, "area": area, "iscrowd": crowd}
            )
            for _ in range(rng.integers(0, 3)):
                moved = [v + float(rng.normal()) * noise * s for v, s in zip(box, (box[2], box[3]) * 2)]
                moved[2:] = [max(1.0, v) for v in moved[2:]]
                if rng.uniform() < 0.1:
                    category = int(rng.integers(1, categories + 1))
                score = float(rng.uniform())
                score = round(score, 1) if ties else score
                detections.append(
                    {"image_id": image, "category_id": category, "bbox": [round(v, 2) for v in moved], "score": score}
                )
    coco = {
        "info": {},
        "images": [{"id": i} for i in range(1, images + 1)],
        "categories": [{"id": c} for c in range(1, categories + 1)],
        "annotations": truths,
    }
    with contextlib.redirect_stdout(io.StringIO()):
        of = COCO()
        of.dataset = json.loads(json.dumps(coco))
        of.createIndex()
        evaluation = COCOeval(of, of.loadRes(json.loads(json.dumps(detections))), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    names = ["mean", "at_50", "at_75", "small", "medium", "large"]
    stats = dict(zip(names, [float(v) for v in evaluation.stats[:6]]))
    plain = lambda a, *keys: [a[k] for k in keys]
    return {
        "images": images,
        "categories": categories,
        "truths": [plain(t, "image_id", "category_id", "bbox", "area", "iscrowd") for t in truths],
        "detections": [plain(d, "image_id", "category_id", "bbox", "score") for d in detections],
        "expected": stats,
    }


settings = [
    (1, 6, 2, 5, 0.05, 0.0, False),
    (2, 8, 3, 6, 0.15, 0.1, False),
    (3, 5, 1, 12, 0.1, 0.3, True),
    (4, 12, 5, 4, 0.3, 0.1, True),
    (5, 2, 1, 300, 0.1, 0.05, False),
]
json.dump(
    {"pycocotools": importlib.metadata.version("pycocotools"), "examples": [example(*s) for s in settings]},
    sys.stdout,
    separators=(",", ":"),
)

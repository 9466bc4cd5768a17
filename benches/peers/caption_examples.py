"""Captions with the scores that pycocoevalcap and NLTK give them.

python benches/peers/caption_examples.py > crates/posenc-math/tests/data/caption_examples.json

needs pycocoevalcap and nltk. Their Java parts and the WordNet corpus are not used.
"""

import importlib.metadata
import json
import random
import sys

from nltk.stem.snowball import SnowballStemmer
from nltk.translate.meteor_score import meteor_score
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

VOCABULARY = (
    "the a button buttons row rows first last of in tab tabs open opens opened opening select selects selecting "
    "go back going list lists listing keys key icon happily happy Image images Settings search"
).split()


class NoSynsets:
    def synsets(self, word):
        return []


def caption(rng, longest):
    return [rng.choice(VOCABULARY) for _ in range(rng.randint(1, longest))]


def changed(rng, words):
    words = list(words)
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(words) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            words.insert(at, rng.choice(VOCABULARY))
        elif kind == 1 and len(words) > 1:
            del words[at % len(words)]
        elif kind == 2:
            words[at % len(words)] = rng.choice(VOCABULARY)
        else:
            words = words[at:] + words[:at]
    return words


def example(seed, candidates, longest):
    rng = random.Random(seed)
    corpus = []
    for number in range(candidates):
        first = caption(rng, longest)
        references = [first] + [changed(rng, first) for _ in range(rng.randint(0, 3))]
        words = changed(rng, first) if rng.random() < 0.8 else caption(rng, longest)
        if number == 3:
            words = []
        if seed == 3 and number == 5:
            references.append([])
        corpus.append((words, references))
    results = {n: [" ".join(words)] for n, (words, _) in enumerate(corpus)}
    truths = {n: [" ".join(r) for r in references] for n, (_, references) in enumerate(corpus)}
    bleu, each = Bleu(4).compute_score(truths, results, verbose=0)
    rouge, cider = Rouge().compute_score(truths, results), Cider().compute_score(truths, results)
    meteor = [meteor_score(references, words, stemmer=SnowballStemmer("english"), wordnet=NoSynsets()) for words, references in corpus]
    mean = lambda values: sum(values) / len(values)
    plain = lambda scores: {"mean": float(scores[0]), "each": [float(v) for v in scores[1]]}
    return {
        "captions": [[results[n][0], truths[n]] for n in range(candidates)],
        "bleu": [{"corpus": float(bleu[k]), "each": [float(v) for v in each[k]]} for k in range(2)],
        "rouge": plain(rouge),
        "cider": plain(cider),
        "meteor": plain((mean(meteor), meteor)),
    }


versions = {name: importlib.metadata.version(name) for name in ["pycocoevalcap", "nltk"]}
corpora = [example(1, 20, 4), example(2, 30, 7), example(3, 40, 10)]
json.dump({**versions, "corpora": corpora}, sys.stdout, separators=(",", ":"), ensure_ascii=False)

"""Captions with the scores that pycocoevalcap and NLTK give them, and words with NLTK's stems.

python benches/peers/caption_examples.py > crates/posenc-math/tests/data/caption_examples.json

needs pycocoevalcap and nltk. Their Java parts and the WordNet corpus are not used.
"""

import importlib.metadata
import json
import random
import sys

from nltk.stem.porter import PorterStemmer
from nltk.translate.meteor_score import meteor_score
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

VOCABULARY = (
    "the a button buttons row rows first last of in tab tabs open opens opened opening select selects selecting "
    "go back going list lists listing keys key icon happily happy Image images Settings search"
).split()

# Words of all endings, irregular ones, short ones, y after vowels and consonants, letters beyond ASCII, other signs.
WORDS = (
    "caresses ponies ties dies flies caress cats feed agreed bleed plastered bled motoring sing conflated troubled sized "
    "hopping tanned falling hissing fizzed failing filing spied died tried happy sky skies enjoy enjoyment spy say by "
    "relational conditional rational valenci hesitanci digitizer conformabli radicalli differentli vileli analogousli "
    "vietnamization predication operator feudalism decisiveness hopefulness callousness formaliti sensitiviti sensibiliti "
    "geology theology archaeology hopefully totally triplicate formative formalize electriciti electrical hopeful goodness "
    "revival allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent "
    "adoption homologou communism activate angulariti homologous effective bowdlerize probate rate cease controll roll "
    "dying lying tying news innings inning outings outing cannings canning howe proceed exceed succeed proceeded "
    "a is as ies ied eed ed ing s ss y yy yyy yes syzygy toy ion lion station nation ease awed oxed ax vex added egged "
    "snowing boxing playing bys talkativeness Buttons SKIES naïveté façades élégamment straße übungen ñandúes don't twenty-ones 3ds 80s b2bs"
).split()
PARTS = "a ab y ay by cy tr tre oat ivy own ox box rel cond val dig form sens hop fall siz geo log mot agr kiss yell".split()
ENDINGS = (
    "s es ies ied ss sses eed ed ing y ly ational tional enci anci izer bli abli alli entli eli ousli ization ation ator "
    "alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic "
    "able ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e ll le ated bled ized edly ingly"
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
    meteor = [meteor_score(references, words, wordnet=NoSynsets()) for words, references in corpus]
    mean = lambda values: sum(values) / len(values)
    plain = lambda scores: {"mean": float(scores[0]), "each": [float(v) for v in scores[1]]}
    return {
        "captions": [[results[n][0], truths[n]] for n in range(candidates)],
        "bleu": [{"corpus": float(bleu[k]), "each": [float(v) for v in each[k]]} for k in range(2)],
        "rouge": plain(rouge),
        "cider": plain(cider),
        "meteor": plain((mean(meteor), meteor)),
    }


def stems():
    rng = random.Random(4)
    word = lambda: "".join(rng.choices(PARTS, k=rng.randint(0, 3))) + "".join(rng.choices(ENDINGS, k=rng.randint(1, 2)))
    words = sorted(set(WORDS + VOCABULARY + [word() for _ in range(600)]))
    return {w: PorterStemmer().stem(w) for w in words}


versions = {name: importlib.metadata.version(name) for name in ["pycocoevalcap", "nltk"]}
corpora = [example(1, 20, 4), example(2, 30, 7), example(3, 40, 10)]
json.dump({**versions, "corpora": corpora, "stems": stems()}, sys.stdout, separators=(",", ":"), ensure_ascii=False)

"""Write two tasks about the order of words, of one sentence and of two, as files of GLUE.

    python -m recipes.claims.probe_tasks corpus/test --output tasks --train 4000

reads corpus/test.en and corpus/test.docs, and writes

    tasks/one/{train,dev}.tsv    as SST-2: a sentence; 1 as it is, 0 with two neighbours swapped
    tasks/two/{train,dev}.tsv    as WNLI: two neighbours of a document, one of them with two words
                                 swapped; 1 if that is the first, 0 if it is the second

Both ask for the same knowledge; the second asks besides which sentence a word is in. The documents
of train and dev differ, and so do all their sentences.
"""

import os
from typing import Dict, List, Optional, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.arguments import plain_parser, positive
from fairseq_posenc.tools.writing import replacing_all
from recipes.corpus.grammar import PortableRandom

Rows = List[Tuple[str, ...]]
NAMES = {"one": ("sentence", "label"), "two": ("index", "sentence1", "sentence2", "label")}


def write_tasks(corpus: str, folder: str, train: int, dev: int) -> None:
    """Write both tasks, ``dev`` and then ``train`` examples each, from a split of a corpus.

    Raises:
        UsageError: the corpus is not one that ``recipes.corpus`` has written, or too small.
    """
    documents = read_documents(corpus)
    rng = PortableRandom("1/probe tasks")
    splits = {"dev": _examples(documents, dev, rng), "train": _examples(documents, train, rng)}
    with replacing_all() as begin:
        for split, rows in splits.items():
            for name, columns in NAMES.items():
                stream = begin(os.path.join(folder, name, f"{split}.tsv"))
                for row in [columns, *rows[name]]:
                    stream.write("\t".join(row) + "\n")


def read_documents(corpus: str) -> List[List[str]]:
    """Return the documents of a split, each a list of sentences; the last comes first.

    Raises:
        UsageError: a file is missing, or they have different numbers of lines.
    """
    sentences, numbers = read_lines(f"{corpus}.en"), read_lines(f"{corpus}.docs")
    if len(sentences) != len(numbers):
        raise UsageError(f"{corpus}.en has {len(sentences)} lines, its .docs {len(numbers)}")
    documents: Dict[str, List[str]] = {}
    for sentence, number in zip(sentences, numbers):
        documents.setdefault(number, []).append(sentence)
    return list(documents.values())[::-1]


def _examples(documents: List[List[str]], count: int, rng: PortableRandom) -> Dict[str, Rows]:
    """Take documents off the end of a list until both tasks have ``count`` examples."""
    sentences: Rows = []
    sentence_pairs: Rows = []
    while len(sentence_pairs) < count or len(sentences) < count:
        if not documents:
            raise UsageError(
                f"the corpus has sentences for {len(sentence_pairs)} pairs of {count}; make more"
            )
        document = documents.pop()
        orders = [(sentence, swapped(sentence, rng)) for sentence in document]
        for right, wrong in orders:
            if wrong is not None:
                label = rng.chance(0.5)
                sentences.append((right if label else wrong, str(int(label))))
        for first, second in zip(orders, orders[1:]):
            label = rng.chance(0.5)
            pair = (first[label], second[not label])
            if None not in pair:
                sentence_pairs.append((str(len(sentence_pairs)), *pair, str(int(label))))
    return {"one": sentences[:count], "two": sentence_pairs[:count]}


def swapped(sentence: str, rng: PortableRandom) -> Optional[str]:
    """Return a sentence with two neighbouring words swapped, none of them a mark, if it has such.

    Marks stand apart, and the capital goes, which models of lower case do not see.
    """
    text = sentence[:1].lower() + sentence[1:]
    words = text.replace(",", " ,").replace(".", " .").split()
    positions = [
        position
        for position, (word, following) in enumerate(zip(words, words[1:]))
        if word != following and (word + following).isalpha()
    ]
    if not positions:
        return None
    position = rng.pick(positions)
    words[position : position + 2] = words[position + 1], words[position]
    return " ".join(words)


def main() -> None:
    """Parse the command line and write."""
    parser = plain_parser(__doc__)
    add = parser.add_argument
    add("corpus", metavar="SPLIT", help="of recipes.corpus, without .en")
    add("--output", required=True, metavar="FOLDER")
    add("--train", type=positive, default=4000, metavar="N", help="examples (default: 4000)")
    add("--dev", type=positive, default=1000, metavar="N", help="examples (default: 1000)")
    args = parser.parse_args()
    write_tasks(args.corpus, args.output, args.train, args.dev)


if __name__ == "__main__":
    main()

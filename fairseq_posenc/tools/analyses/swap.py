"""Is a sentence translated as well at the end of a long input as at its start? (SHAPE, Table 1)."""

from argparse import Namespace
from typing import Any, Dict, List, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses import pictures
from fairseq_posenc.tools.analyses.loading import Trained, load_all, sample, without_bos
from fairseq_posenc.tools.analyses.report import Report

Parts = List[List[int]]


def swap(
    *,
    models: Sequence[str],
    data: str,
    subset: str = "train",
    pairs: int = 10_000,
    separator: str = "<sep>",
    beam: int = 4,
    max_len_a: float = 1.5,
    max_len_b: int = 10,
    max_tokens: int = 4000,
    remove_bpe: str = "@@ ",
    seed: int = 1,
    cpu: bool = False,
) -> Report:
    """Translate joined sentences in two orders; the arguments are the options of the command.

    Kiyono et al. 2021, section 3.2: X1 … X10, joined by a separator, are translated as they are
    and with the first sentence moved to the end, X2 … X10 X1. The first part of one output and
    the last part of the other are both compared with Y1: sacreBLEU of the detokenised texts. The
    pairs are drawn at random from those of two sentences or more, as many in source and target.

    Our reading: whatever the number of separators in an output, its first or last part is taken;
    how many outputs have a wrong number is told. An output without any is its own first and last.

    Raises:
        UsageError: no such separator, no joined sentences, and what is wrong with the files.
    """
    if pairs < 1:
        raise UsageError(f"--pairs must be 1 or more, not {pairs}")
    search = Namespace(beam=beam, max_len_a=max_len_a, max_len_b=max_len_b)
    results: Dict[str, Dict[str, Any]] = {}
    for trained in load_all(models, data, cpu):
        joined = _joined_pairs(trained, subset, pairs, separator, seed)
        results[trained.name] = _compare(trained, joined, separator, search, max_tokens, remove_bpe)
        signature = results[trained.name].pop("signature")
    wrong = "; ".join(
        f"{name} {found['wrong_original']} and {found['wrong_swapped']}"
        for name, found in results.items()
    )
    return Report(
        title=f"sacreBLEU of the first sentence, {len(joined)} joined pairs of {subset}",
        table=_table(results),
        notes=[
            "Original: the first sentence stands first; swapped: it stands last.",
            f"Outputs with a wrong number of separators, original and swapped: {wrong}.",
            f"Signature: {signature}",
        ],
        data={
            "models": results, "subset": subset, "pairs": len(joined), "beam": beam,
            "signature": signature,
        },
        pictures={".png": pictures.swapped(results)},
    )  # fmt: skip


def parts(tokens: Sequence[int], separator: int) -> Parts:
    """Cut tokens at the separators, which are left out; n of them make n + 1 parts."""
    found: Parts = [[]]
    for token in tokens:
        if token == separator:
            found.append([])
        else:
            found[-1].append(token)
    return found


def first_moved_last(sentences: Parts, separator: int) -> List[int]:
    """Join sentences with the first one last."""
    return join(sentences[1:] + sentences[:1], separator)


def join(sentences: Parts, separator: int) -> List[int]:
    """Join sentences: the inverse of :func:`parts`."""
    joined = list(sentences[0])
    for sentence in sentences[1:]:
        joined += [separator, *sentence]
    return joined


def _joined_pairs(
    trained: Trained, subset: str, wanted: int, separator: str, seed: int
) -> List[Tuple[Parts, Parts]]:
    """Return the sentences of source and target of pairs drawn at random, without EOS and BOS."""
    dataset, task = trained.pairs(subset), trained.task
    marks = [_index(d, separator) for d in (task.source_dictionary, task.target_dictionary)]
    found = []
    for index in sample(len(dataset), None, seed):
        pair = dataset[index]
        source = without_bos(pair["source"], task.source_dictionary.bos())
        sides = [side[:-1].tolist() for side in (source, pair["target"])]
        ours, theirs = (parts(side, mark) for side, mark in zip(sides, marks))
        if len(ours) == len(theirs) > 1:
            found.append((ours, theirs))
            if len(found) == wanted:
                break
    if not found:
        raise UsageError(f"no pair of '{subset}' has sentences joined by {separator} on both sides")
    return found


def _index(dictionary: Dictionary, separator: str) -> int:
    if separator not in dictionary:
        raise UsageError(
            f"the dictionary has no {separator}: give the token that joins the sentences of this "
            "data with --separator"
        )
    return dictionary.index(separator)


def _compare(
    trained: Trained,
    joined: List[Tuple[Parts, Parts]],
    separator: str,
    search: Namespace,
    max_tokens: int,
    remove_bpe: str,
) -> Dict[str, Any]:
    task, target = trained.task, trained.task.target_dictionary
    mark, target_mark = task.source_dictionary.index(separator), target.index(separator)
    orders = {
        "original": [join(source, mark) for source, _ in joined],
        "swapped": [first_moved_last(source, mark) for source, _ in joined],
    }
    language = task.cfg.target_lang
    references = _texts([t[0] for _, t in joined], target, remove_bpe, language, escape_unk=True)
    metric, found = BLEU(trg_lang=language), {}
    for (order, sources), place in zip(orders.items(), (0, -1)):
        translated = _translate(trained, sources, search, max_tokens)
        outputs = [parts(tokens, target_mark) for tokens in translated]
        hypotheses = _texts([output[place] for output in outputs], target, remove_bpe, language)
        found[order] = metric.corpus_score(hypotheses, [references]).score
        wrong = sum(len(output) != len(t) for output, (_, t) in zip(outputs, joined))
        found[f"wrong_{order}"] = wrong
    found["drop"] = found["original"] - found["swapped"]
    return {**found, "encoding": trained.signature, "signature": str(metric.get_signature())}


def _translate(
    trained: Trained, sources: List[List[int]], search: Namespace, max_tokens: int
) -> List[List[int]]:
    """Return the best output for each source, without EOS."""
    task, eos = trained.task, trained.task.source_dictionary.eos()
    generator = task.build_generator([trained.model], search)
    inputs = trained.inputs([torch.tensor([*source, eos]) for source in sources])
    found: List[List[int]] = [[] for _ in sources]
    for batch in trained.batches(inputs, max_tokens):
        outputs = task.inference_step(generator, [trained.model], batch)
        for index, hypotheses in zip(batch["id"].tolist(), outputs):
            found[index] = hypotheses[0]["tokens"][:-1].tolist()
    return found


def _texts(
    sentences: Parts, dictionary: Dictionary, bpe: str, language: str, escape_unk: bool = False
) -> List[str]:
    """Return plain text: subwords joined, detokenised, ``<<unk>>`` in references as fairseq's."""
    detokenise = MosesDetokenizer(lang=language).detokenize
    lines = (dictionary.string(sentence, bpe, escape_unk) for sentence in sentences)
    return [detokenise(line.split()) for line in lines]


def _table(results: Dict[str, Dict[str, Any]]) -> List[List[str]]:
    columns = ("original", "swapped", "drop")
    lines = [["", "Original", "Swapped", "Performance drop"]]
    return lines + [
        [name, *(f"{found[column]:.2f}" for column in columns)] for name, found in results.items()
    ]

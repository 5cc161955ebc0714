"""Is a sentence translated as well at the end of a long input as at its start? (SHAPE, Table 1)."""

from argparse import Namespace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from sacrebleu.metrics import BLEU

from fairseq_posenc.data.languages import language_of_text
from fairseq_posenc.data.segmentation import detokenise_lines
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.analyses.models import LoadedModel, load_models, sample, without_bos
from fairseq_posenc.tools.analyses.report import Report
from fairseq_posenc.tools.scores.data_folder import subwords_of_symbols
from fairseq_posenc.tools.scores.texts import UNKNOWN, Languages, join_subwords
from fairseq_posenc.tools.scores.tokenizers import sacrebleu_tokenizer
from fairseq_posenc.tools.tables.plots import COLOURS, new_figure

Parts = List[List[int]]


def swap(
    *,
    models: Sequence[str],
    data: str,
    subset: str = "train",
    pairs: int = 10_000,
    separator: str = "<sep>",
    beam: int = 4,
    lenpen: float = 1,
    max_len_a: float = 1.5,
    max_len_b: int = 10,
    max_tokens: int = 4000,
    remove_bpe: Optional[str] = None,
    seed: int = 1,
    cpu: bool = False,
    languages: Languages = UNKNOWN,
) -> Report:
    """Translate joined sentences in two orders.

    Kiyono et al. 2021, section 3.2: X1 … X10, joined by a separator, are translated as they are
    and with the first sentence moved to the end, X2 … X10 X1. The first part of one output and
    the last part of the other are both compared with Y1: sacreBLEU of the detokenised texts. The
    pairs are drawn at random from those of two sentences or more, as many in source and target.

    Our reading: whatever the number of separators in an output, its first or last part is taken; a
    note says how many outputs have a wrong number. An output without any is its own first and last.
    """
    if pairs < 1:
        raise UsageError(f"--pairs must be 1 or more, not {pairs}")
    search = Namespace(beam=beam, lenpen=lenpen, max_len_a=max_len_a, max_len_b=max_len_b)
    results: Dict[str, Dict[str, Any]] = {}
    for loaded in load_models(models, data, cpu, languages):
        joined = _joined_pairs(loaded, subset, pairs, separator, seed)
        results[loaded.name] = _compare(loaded, joined, separator, search, max_tokens, remove_bpe)
        signature = results[loaded.name].pop("signature")
    columns = ("original", "swapped", "drop")
    lines = [[name, *(f"{of[column]:.2f}" for column in columns)] for name, of in results.items()]
    wrong = "; ".join(
        f"{name} {result['wrong_original']} and {result['wrong_swapped']}"
        for name, result in results.items()
    )
    return Report(
        title=f"sacreBLEU of the first sentence, {len(joined)} joined pairs of {subset}",
        table=[["", "Original", "Swapped", "Performance drop"], *lines],
        notes=[
            "Original: the first sentence stands first; swapped: it stands last.",
            f"Outputs with a wrong number of separators, original and swapped: {wrong}.",
            f"Signature: {signature}",
        ],
        data={
            "models": results, "subset": subset, "pairs": len(joined), "beam": beam,
            "lenpen": lenpen, "signature": signature,
        },
        pictures={".png": _draw(results)},
    )  # fmt: skip


def parts(tokens: Sequence[int], separator: int) -> Parts:
    """Cut tokens at the separators, which are left out; n of them make n + 1 parts."""
    sentences: Parts = [[]]
    for token in tokens:
        if token == separator:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return sentences


def join(sentences: Parts, separator: int) -> List[int]:
    """Join sentences: the inverse of :func:`parts`."""
    joined = list(sentences[0])
    for sentence in sentences[1:]:
        joined += [separator, *sentence]
    return joined


def _joined_pairs(
    loaded: LoadedModel, subset: str, limit: int, separator: str, seed: int
) -> List[Tuple[Parts, Parts]]:
    """Return the sentences of source and target of pairs drawn at random, without EOS and BOS."""
    dataset, task = loaded.pairs(subset), loaded.task
    dictionaries = (task.source_dictionary, task.target_dictionary)
    if any(separator not in dictionary for dictionary in dictionaries):
        raise UsageError(
            f"the dictionary has no {separator}: give the token that joins the sentences of this "
            "data with --separator"
        )
    marks = [dictionary.index(separator) for dictionary in dictionaries]
    joined = []
    for index in sample(len(dataset), None, seed):
        pair = dataset[index]
        source = without_bos(pair["source"], task.source_dictionary.bos())
        sides = [side[:-1].tolist() for side in (source, pair["target"])]
        source_parts, target_parts = (parts(side, mark) for side, mark in zip(sides, marks))
        if len(source_parts) == len(target_parts) > 1:
            joined.append((source_parts, target_parts))
            if len(joined) == limit:
                break
    if not joined:
        raise UsageError(f"no pair of '{subset}' has sentences joined by {separator} on both sides")
    return joined


def _compare(
    loaded: LoadedModel,
    joined: List[Tuple[Parts, Parts]],
    separator: str,
    search: Namespace,
    max_tokens: int,
    remove_bpe: Optional[str],
) -> Dict[str, Any]:
    task, target = loaded.task, loaded.task.target_dictionary
    mark, target_mark = task.source_dictionary.index(separator), target.index(separator)
    orders = {
        "original": [join(source, mark) for source, _ in joined],
        "swapped": [join(source[1:] + source[:1], mark) for source, _ in joined],
    }
    symbol = remove_bpe or subwords_of_symbols(target.symbols)
    language = task.cfg.target_lang
    references = _texts([t[0] for _, t in joined], target, symbol, language, escape_unk=True)
    language = language_of_text(language, references) or language
    metric, figures = BLEU(tokenize=sacrebleu_tokenizer(language)), {}
    # the first sentence's translation is the first part as it stands, the last part when swapped
    for (order, sources), index in zip(orders.items(), (0, -1)):
        translated = _translate(loaded, sources, search, max_tokens)
        outputs = [parts(tokens, target_mark) for tokens in translated]
        hypotheses = _texts([output[index] for output in outputs], target, symbol, language)
        figures[order] = metric.corpus_score(hypotheses, [references]).score
        wrong = sum(len(output) != len(t) for output, (_, t) in zip(outputs, joined))
        figures[f"wrong_{order}"] = wrong
    figures["drop"] = figures["original"] - figures["swapped"]
    return {**figures, "encoding": loaded.signature, "signature": str(metric.get_signature())}


def _translate(
    loaded: LoadedModel, sources: List[List[int]], search: Namespace, max_tokens: int
) -> List[List[int]]:
    """Return the best output for each source, without EOS."""
    task, eos = loaded.task, loaded.task.source_dictionary.eos()
    generator = task.build_generator([loaded.model], search)
    inputs = loaded.inputs([torch.tensor([*source, eos]) for source in sources])
    best: List[List[int]] = [[] for _ in sources]
    for batch in loaded.batches(inputs, max_tokens):
        outputs = task.inference_step(generator, [loaded.model], batch)
        for index, hypotheses in zip(batch["id"].tolist(), outputs):
            best[index] = hypotheses[0]["tokens"][:-1].tolist()
    return best


def _texts(
    sentences: Parts, dictionary: Dictionary, bpe: str, language: str, escape_unk: bool = False
) -> List[str]:
    """Return plain text, ``<<unk>>`` in references as fairseq's.

    Joined sentencepieces are plain text; other subwords are of tokens, which are detokenised.
    """
    subword_lines = (dictionary.string(sentence, None, escape_unk) for sentence in sentences)
    lines = [join_subwords(line, bpe) for line in subword_lines]
    return lines if bpe == "sentencepiece" else detokenise_lines(lines, language)


def _draw(results: Mapping[str, Mapping[str, Any]]) -> Any:
    """Draw BLEU of the first sentence in both orders, two bars per model (SHAPE, Table 1)."""
    figure = new_figure(1.8 + 1.3 * len(results), 3.6)
    axes = figure.add_subplot()
    for number, order in enumerate(("original", "swapped")):
        places = [x + 0.38 * (number - 0.5) for x in range(len(results))]
        values = [result[order] for result in results.values()]
        bars = axes.bar(places, values, width=0.36, color=COLOURS[number], label=order)
        axes.bar_label(bars, fmt="%.1f", fontsize=9)
    axes.set_xticks(range(len(results)), list(results))
    axes.set_ylabel("sacreBLEU of the first sentence")
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure

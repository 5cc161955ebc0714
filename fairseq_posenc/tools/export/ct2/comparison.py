"""CTranslate2 models against fairseq on the same data: translations, BLEU and speed."""

import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tqdm import tqdm

from fairseq_posenc.files import replacing
from fairseq_posenc.tools.export.ct2.translating import Sample, Translation, lines
from fairseq_posenc.tools.results.score import evaluate

System = Callable[[Sample], List[Translation]]
FAIRSEQ = "fairseq"


class Measured(NamedTuple):
    """What a system made of a test set.

    Attributes:
        translations: by the number of the sentence.
        seconds: of all batches together.
        output: file of its translations.
        bleu: sacreBLEU.
    """

    translations: Dict[int, Translation]
    seconds: float
    output: str
    bleu: float

    @property
    def tokens(self) -> int:
        """Tokens of all translations, EOS included."""
        return sum(len(found.tokens) + 1 for found in self.translations.values())


def race(
    systems: Dict[str, System], samples: Sequence[Sample]
) -> Tuple[Dict[str, List[List[Translation]]], Dict[str, float]]:
    """Let all systems translate each batch in turn, after one batch that is not timed.

    A machine whose speed drifts slows all alike. Who begins changes with every batch.

    Returns:
        the translations of every batch, and the seconds, by system.
    """
    found: Dict[str, List[List[Translation]]] = {name: [] for name in systems}
    seconds = dict.fromkeys(systems, 0.0)
    names = list(systems)
    for system in systems.values():
        system(samples[0])
    for turn, sample in enumerate(tqdm(samples, desc="translating", unit="batch", leave=False)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begin = time.perf_counter()
            found[name].append(systems[name](sample))
            seconds[name] += time.perf_counter() - begin
    return found, seconds


def compare(
    systems: Dict[str, System],
    task: Any,
    samples: Sequence[Sample],
    folder: str,
    reference: Optional[str] = None,
    remove_bpe: str = "@@ ",
) -> Dict[str, Measured]:
    """Translate with all systems, write ``<folder>/generate.<system>.out``, and score.

    Args:
        systems: by name.
        task: of the data.
        samples: the batches.
        folder: for the outputs, which ``posenc score --generated`` reads.
        reference: raw text of the references, as for ``posenc score``.
        remove_bpe: kind of subwords, as there.
    """
    found, seconds = race(systems, samples)
    measured = {}
    for name, batches in found.items():
        output = os.path.join(folder, f"generate.{name}.out")
        with replacing(output) as stream:
            for sample, translations in zip(samples, batches):
                stream.writelines(f"{line}\n" for line in lines(task, sample, translations))
        score = evaluate(
            generated=output,
            reference=reference,
            remove_bpe=remove_bpe,
            language=task.cfg.target_lang,
            source_language=task.cfg.source_lang,
        )
        by_number = {one.sentence: one for batch in batches for one in batch}
        measured[name] = Measured(by_number, seconds[name], output, score["all"]["sacrebleu"])
    return measured


def render(measured: Dict[str, Measured]) -> str:
    """Return a Markdown table: each system against the first one."""
    (first, base), *_ = measured.items()
    rows = [
        f"| | tokens/s | ÷ {first} | sacreBLEU | same translation as {first} |",
        "|---|---:|---:|---:|---:|",
    ]
    speed = base.tokens / base.seconds
    for name, system in measured.items():
        own = system.tokens / system.seconds
        same = "" if name == first else _same(system, base)
        rows.append(f"| {name} | {own:.0f} | {own / speed:.2f} | {system.bleu:.2f} | {same} |")
    return "\n".join(rows)


def _same(system: Measured, base: Measured) -> str:
    count = len(base.translations)
    same = sum(
        system.translations[number].tokens == one.tokens
        for number, one in base.translations.items()
    )
    return f"{same} of {count}, {100 * same / count:.2f} %"

"""Four benchmarks of XTREME: their languages (Hu et al. 2020, Table 1), and their files."""

import os
from typing import Dict, List, NamedTuple, Tuple

from fairseq_posenc.errors import UsageError

# of the names of TyDiQA-GoldP's own files
_NAMES = {
    "ar": "arabic", "bn": "bengali", "en": "english", "fi": "finnish", "id": "indonesian",
    "ko": "korean", "ru": "russian", "sw": "swahili", "te": "telugu",
}  # fmt: skip


class Benchmark(NamedTuple):
    """A benchmark.

    Attributes:
        prefix: of its splits, ``xquad`` of ``xquad-de``.
        languages: over which its figures are means.
        metric: how answers are scored, see ``posenc prepare squad``.
        files: where the files of a language may lie in a folder of raw data, the benchmark's own
            layout first, then those of XTREME's download and of others.
    """

    prefix: str
    languages: Tuple[str, ...]
    metric: str = ""
    files: Tuple[str, ...] = ()

    def splits(self) -> Tuple[str, ...]:
        """Return the names of its splits."""
        return tuple(f"{self.prefix}-{language}" for language in self.languages)


BENCHMARKS: Dict[str, Benchmark] = {
    "XNLI": Benchmark("test", tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split())),
    "XQuAD": Benchmark(
        "xquad",
        tuple("en es de el ru tr ar vi th zh hi".split()),
        "squad",
        ("xquad/xquad.{language}.json",),
    ),
    "MLQA": Benchmark(
        "mlqa",
        tuple("en es de ar hi vi zh".split()),
        "mlqa",
        # question and context in one language
        tuple(
            f"{folder}/test/test-context-{{language}}-question-{{language}}.json"
            for folder in ("MLQA_V1", "mlqa/MLQA_V1", "mlqa")
        ),
    ),
    "TyDiQA-GoldP": Benchmark(
        "tydiqa",
        tuple(_NAMES),
        "squad",
        tuple(
            f"{folder}/{file}"
            for folder in ("tydiqa-goldp-v1.1-dev", "tydiqa/tydiqa-goldp-v1.1-dev", "tydiqa")
            for file in (
                "tydiqa-goldp-dev-{name}.json",
                "tydiqa.goldp.{language}.dev.json",
                "tydiqa.{language}.dev.json",
            )
        ),
    ),
}

# where sentence pairs may lie, likewise; XTREME's download has MNLI's training text alone
SENTENCE_PAIRS: Dict[str, Tuple[str, ...]] = {
    "MNLI": ("MNLI/train.tsv", "glue/MNLI/train.tsv", "xnli/train-en.tsv"),
    "XNLI": (
        "XNLI-1.0/xnli.test.tsv", "xnli/xnli.test.tsv", "xnli/XNLI-1.0/xnli.test.tsv",
        "xnli/test-en.tsv",
    ),
}  # fmt: skip


class TestFile(NamedTuple):
    """A file of questions and the options of ``posenc prepare squad`` for it."""

    split: str
    language: str
    metric: str
    path: str


def find_questions(folder: str, official: bool = False) -> Tuple[List[TestFile], List[str]]:
    """Return the files of XQuAD, MLQA and TyDiQA-GoldP in a folder, and what is missing.

    Files of other languages than a benchmark's are left out. With ``official`` the folder need not
    be there: the files are those of the benchmarks' own layout.
    """
    test_files: List[TestFile] = []
    missing = []
    for title, benchmark in BENCHMARKS.items():
        if not benchmark.files:
            continue
        absent = []
        for split, language in zip(benchmark.splits(), benchmark.languages):
            names = {"language": language, "name": _NAMES.get(language, "")}
            paths = [os.path.join(folder, file.format(**names)) for file in benchmark.files]
            path = paths[0] if official else next(filter(os.path.isfile, paths), None)
            if path:
                test_files.append(TestFile(split, language, benchmark.metric, path))
            else:
                absent.append(language)
        count, total = len(benchmark.languages) - len(absent), len(benchmark.languages)
        if absent:
            missing.append(f"{title}: {count} of {total} languages, without {', '.join(absent)}")
        # a folder of that name in which nothing is found has another layout
        for file in () if count else benchmark.files:
            subfolder = os.path.join(folder, file.split("/")[0])
            if os.path.isdir(subfolder):
                raise UsageError(
                    f"{subfolder} holds no file of {title} where it should be, as "
                    + " or ".join(benchmark.files)
                )
    if not test_files:
        expected = (file for benchmark in BENCHMARKS.values() for file in benchmark.files[:1])
        raise UsageError(
            f"no files of XQuAD, MLQA or TyDiQA-GoldP in {folder}; it should hold "
            + ", or ".join(expected)
        )
    return test_files, missing

"""Every task and model, untrained, in fairseq's programs: as many sentences come out as go in."""

import json
import re
import shutil
import sys

import pytest
import torch
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from fairseq_cli import generate, interactive, validate

from fairseq_posenc import register_all
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.bert import glue, squad
from fairseq_posenc.tools.bert.glue_tasks import TASKS as TASKS_OF_GLUE
from tests.tiny import learn_subwords

PROGRAMS = {"generate": generate, "interactive": interactive, "validate": validate}
COUNTS = {"train": 200, "valid": 20, "test": 20}
TRANSFORMER = "--arch posenc_transformer_tiny".split()
LANGUAGE_MODEL = "--arch posenc_transformer_lm_tiny".split()
BERT = "--arch posenc_bert_tiny --max-positions 128".split()
LANGUAGES = "--source-lang en --target-lang de".split()
PAIRS = "--lang-pairs en-de --encoder-langtok tgt --decoder-langtok".split()
LINES = "--sample-break-mode eos --tokens-per-sample 64".split()
QUESTIONS = "--max-query-length 9".split()
# task -> model, its options, folder of data, options of the task, and the programs
TASKS = {
    "posenc_translation": ("posenc_transformer", TRANSFORMER, "pairs", LANGUAGES, PROGRAMS),
    "translation": ("posenc_transformer", TRANSFORMER, "pairs", LANGUAGES, PROGRAMS),
    "posenc_multilingual": ("posenc_transformer", TRANSFORMER, "pairs", PAIRS, PROGRAMS),
    "translation_multi_simple_epoch": ("posenc_transformer", TRANSFORMER, "pairs", PAIRS, PROGRAMS),
    "language_modeling": ("posenc_transformer_lm", LANGUAGE_MODEL, "lines", LINES, PROGRAMS),
    "posenc_masked_lm": ("posenc_bert", BERT, "lines", LINES, ["validate"]),
    "posenc_sentence_prediction": ("posenc_bert", BERT, "glue", [], ["validate"]),
    "posenc_question_answering": ("posenc_bert", BERT, "squad", QUESTIONS, ["validate"]),
}  # fmt: skip
CRITERIA = {"posenc_masked_lm": "masked_lm", **{name: name for name in list(TASKS)[-2:]}}


def test_every_task_and_model_of_the_plugin_is_tried():
    register_all()
    tasks = {name for name, task in TASK_REGISTRY.items() if "posenc" in task.__module__}
    models = {name for name, model in MODEL_REGISTRY.items() if "posenc" in model.__module__}
    assert tasks <= TASKS.keys() and models == {model for model, *_ in TASKS.values()}


@pytest.fixture(scope="module")
def data(binarised, tmp_path_factory):
    """A folder of a data set of each kind, all of the same lines of text."""
    register_all()
    folder = tmp_path_factory.mktemp("data")
    shutil.copytree(binarised, folder / "pairs")
    (folder / "lines").mkdir()
    for name in ("pairs", "lines"):
        shutil.copy(binarised / "dict.en.txt", folder / name / "dict.txt")
    text = (binarised.parent / "train.en").read_text(encoding="utf-8").splitlines()
    learn_subwords(folder / "text", text, 60)
    (folder / "rte").mkdir()
    for split, count in COUNTS.items():
        lines = (binarised.parent / f"{split}.en").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        for ending in ("bin", "idx"):
            name = f"{split}.en-de.en.{ending}"
            shutil.copy(binarised / name, folder / "lines" / f"{split}.{ending}")
        _write_pairs(lines, folder / "rte" / f"{split.replace('valid', 'dev')}.tsv")
        _write_questions(lines, folder / f"{split}.json")
        squad.prepare(f"{folder}/{split}.json", split, f"{folder}/text", f"{folder}/squad")
    glue.prepare(TASKS_OF_GLUE["RTE"], f"{folder}/rte", f"{folder}/text", f"{folder}/glue")
    return folder


def _write_pairs(lines, path):
    rows = [f"{n}\t{line}\t{line}\tentailment\n" for n, line in enumerate(lines)]
    path.write_text("index\tsentence1\tsentence2\tlabel\n" + "".join(rows), encoding="utf-8")


def _write_questions(lines, path):
    paragraphs = []
    for number, line in enumerate(lines):
        answer = {"text": line.split()[0], "answer_start": 0}
        question = {"id": str(number), "question": line.split()[-1], "answers": [answer]}
        paragraphs.append({"context": line, "qas": [question]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")


@pytest.fixture(scope="module")
def checkpoint(data, trains, tmp_path_factory):
    """A function that returns the checkpoint of a task's model, of one update, made once."""
    folder = tmp_path_factory.mktemp("models")

    def checkpoint(task):
        name = "posenc_translation" if task == "translation" else task  # one model for both
        _, model, source, options, _ = TASKS[name]
        if not (folder / name).exists():
            trains("fairseq-train", data / source, "--user-dir", "fairseq_posenc", "--task", name,
                   *model, *options, "--criterion", CRITERIA.get(name, "cross_entropy"),
                   *"--optimizer adam --lr 0.001 --max-update 1 --batch-size 8 --cpu".split(),
                   *"--num-workers 0 --disable-validation --save-dir".split(),
                   folder / name)  # fmt: skip
        return folder / name / "checkpoint_last.pt"

    return checkpoint


@pytest.mark.parametrize(
    "task, name", [(task, name) for task, (*_, programs) in TASKS.items() for name in programs]
)
def test_as_many_come_out_as_go_in(task, name, checkpoint, data, binarised, monkeypatch, capsys):
    """Of batches that are no multiple of 8, fairseq alone leaves out the rest."""
    _, _, source, options, _ = TASKS[task]
    words = ["--task", task, *options, "--path", checkpoint(task), "--max-tokens", "130"]
    if name != "validate":
        words += ["--beam", "1", "--max-len-b", "2", *(LANGUAGES if source == "pairs" else [])]
    words += {
        "generate": ["--gen-subset", "test"],
        "interactive": ["--input", binarised.parent / "test.en", "--buffer-size", "13"],
        "validate": ["--valid-subset", "valid"],
    }[name]
    validated = []
    monkeypatch.setattr(FairseqTask, "reduce_metrics", lambda self, logs, _: validated.extend(logs))
    call(monkeypatch, name, data / source, words)
    hypotheses = re.findall(r"^H-(\d+)\t", capsys.readouterr().out, re.MULTILINE)
    if name == "validate":
        assert sum(log["nsentences"] for log in validated) == COUNTS["valid"]
    else:
        assert sorted(map(int, hypotheses)) == list(range(COUNTS["test"]))


def call(monkeypatch, name, folder, words):
    words = [folder, "--user-dir", "fairseq_posenc", "--cpu", "--num-workers", "0", *words]
    monkeypatch.setattr(sys, "argv", [f"fairseq-{name}", *map(str, words)])
    PROGRAMS[name].cli_main()


def test_a_model_of_many_languages_asks_which_to_translate(checkpoint, data, monkeypatch):
    words = ["--task", "posenc_multilingual", *PAIRS, "--path", checkpoint("posenc_multilingual")]
    with pytest.raises(UsageError, match="as in --source-lang en --target-lang de"):
        call(monkeypatch, "generate", data / "pairs", [*words, "--batch-size", "8"])


MULTILINGUAL = ["--task", "posenc_multilingual", *LANGUAGES]
PAIR = ["--task", "translation", *LANGUAGES]


@pytest.mark.parametrize(
    "trained, words, told",
    [
        # translated without the tag that says into which language, in silence
        ("posenc_multilingual", [*MULTILINGUAL, *PAIRS[:-1]],
         "with --encoder-langtok tgt --decoder-langtok .*this command .*tgt no --decoder-langtok"),
        ("translation_multi_simple_epoch", [*MULTILINGUAL, "--encoder-langtok", "src"],
         "with --encoder-langtok tgt .* this command has --encoder-langtok src"),
        # these were told to prepare the data with other subwords
        ("posenc_multilingual", [*MULTILINGUAL, *PAIRS, "--langs", "en,de"],
         "trained on the languages de,en, .*this command has en,de: give all of them by --langs"),
        ("posenc_multilingual", PAIR, "between many languages: --task posenc_multilingual"),
        ("posenc_translation", [*MULTILINGUAL, *PAIRS], "one pair of languages: --task posenc_tr"),
        ("posenc_multilingual", [*MULTILINGUAL, *PAIRS, "--gen-subset", "valid,test"],
         "valid,test: fairseq-generate takes one set"),
        ("posenc_multilingual", [*MULTILINGUAL, *PAIRS, "--gen-subset", "tset"],
         "no binarised 'tset' set of 'main:en-de' in"),
    ],
)  # fmt: skip
def test_languages_and_sets_are_asked_for_as_in_training(
    trained, words, told, checkpoint, data, monkeypatch
):
    words = ["--path", checkpoint(trained), "--batch-size", "8", *words]
    with pytest.raises(UsageError, match=told):
        call(monkeypatch, "generate", data / "pairs", words)


def test_a_set_is_shared_out_once_and_not_by_an_option_without_effect(
    checkpoint, data, monkeypatch, capsys
):
    """By ``--num-shards``, fairseq-generate would translate the whole set in every process."""
    words = [*LANGUAGES, "--task", "posenc_translation", "--path", checkpoint("posenc_translation")]
    words += ["--max-tokens", "130", "--max-len-b", "2"]
    with pytest.raises(UsageError, match="no effect.*--distributed-world-size 2 .*-rank 0 to 1"):
        call(monkeypatch, "generate", data / "pairs", [*words, "--num-shards", "2"])
    for rank in "01":
        workers = ["--distributed-world-size", "2", "--distributed-rank", rank]
        call(monkeypatch, "generate", data / "pairs", [*words, *workers])
    hypotheses = re.findall(r"^H-(\d+)\t", capsys.readouterr().out, re.MULTILINE)
    assert sorted(map(int, hypotheses)) == list(range(COUNTS["test"]))


def test_a_language_model_takes_part_if_its_scores_are_of_the_targets_tokens(
    checkpoint, data, tmp_path, monkeypatch
):
    words = [*LANGUAGES, "--task", "posenc_translation", "--path", checkpoint("posenc_translation")]
    words += ["--max-tokens", "130", "--max-len-b", "2", "--lm-path"]
    state = torch.load(checkpoint("language_modeling"), weights_only=False)
    state["cfg"]["model"].dictionary_hash = None  # as stock fairseq's models
    torch.save(state, tmp_path / "lm.pt")
    folder = shutil.copytree(data / "pairs", tmp_path / "pairs")
    call(monkeypatch, "generate", folder, [*words, tmp_path / "lm.pt"])
    with pytest.raises(UsageError, match="fairseq-interactive does not read --lm-path"):
        call(monkeypatch, "interactive", folder, [*words, tmp_path / "lm.pt"])
    with pytest.raises(UsageError, match="--lm-path names no language model"):
        call(monkeypatch, "generate", folder, [*words, checkpoint("posenc_translation")])
    lines = (folder / "dict.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "dict.txt").write_text("".join(reversed(lines)), encoding="utf-8")
    with pytest.raises(UsageError, match="dict.txt is not the target's dictionary"):
        call(monkeypatch, "generate", folder, [*words, tmp_path / "lm.pt"])

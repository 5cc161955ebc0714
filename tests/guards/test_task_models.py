"""A task takes the models that are made for it, and a training begins with weights of its own."""

from argparse import Namespace

import pytest
from fairseq import models
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.multilingual_translation import MultilingualTranslationTask

from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards.task_models import check_family
from fairseq_posenc.models import bert, transformer, transformer_lm  # noqa: F401
from fairseq_posenc.tasks.masked_lm import PosencMaskedLMTask
from fairseq_posenc.tasks.multilingual import PosencMultilingualTask
from fairseq_posenc.tasks.sentence_prediction import PosencSentencePredictionTask
from fairseq_posenc.tasks.translation import PosencTranslationTask

ARCHITECTURES = {
    "posenc_transformer_tiny": "a translation model",
    "transformer": "a translation model",
    "posenc_transformer_lm_tiny": "a language model",
    "transformer_lm": "a language model",
    "posenc_bert_tiny": "a BERT model",
}
TASKS = {
    PosencTranslationTask: "a translation model",
    LanguageModelingTask: "a language model",
    PosencMaskedLMTask: "a BERT model",
    PosencSentencePredictionTask: "a BERT model",
}


PAIRS = [(a, task) for task in TASKS for a in ARCHITECTURES if ARCHITECTURES[a] != TASKS[task]]


@pytest.mark.parametrize("option", ["arch", "_name"], ids=["command line", "Hydra"])
@pytest.mark.parametrize("arch, task", PAIRS)
def test_a_model_that_is_made_for_another_task_is_refused(arch, task, option):
    # fairseq-generate translated with a language model, at 2 BLEU; others ended in TypeErrors
    with pytest.raises(UsageError) as error:
        models.build_model(Namespace(**{option: arch}), task.__new__(task))
    assert f"{arch} is {ARCHITECTURES[arch]}, and --task " in str(error.value)
    assert f" takes {TASKS[task]}, such as --arch posenc_" in str(error.value)


def test_one_model_for_each_pair_of_languages_is_no_task_of_one_model():
    with pytest.raises(UsageError, match="--task posenc_multilingual trains one on all"):
        task = MultilingualTranslationTask.__new__(MultilingualTranslationTask)
        models.build_model(Namespace(arch="posenc_transformer_tiny"), task)


@pytest.mark.parametrize("pairs", ["en-zh-CN", ["en-de", "en"]])
def test_pairs_are_of_two_languages(pairs):
    with pytest.raises(UsageError, match="--lang-pairs .*: expected two languages with a hyphen"):
        PosencMultilingualTask.setup_task(Namespace(lang_pairs=pairs))


def test_a_training_begins_with_weights_of_its_own_family():
    own = Namespace(arch="posenc_transformer_tiny")
    for name in ("transformer", "transformer_iwslt_de_en", "posenc_transformer", "unheard_of"):
        check_family({"arch": name}, "a.pt", own)
    for name in ("_name", "arch"):
        with pytest.raises(UsageError, match="a.pt is a language model, and a translation model"):
            check_family({name: "posenc_transformer_lm"}, "a.pt", own)

"""Options of fairseq-hydra-train have the effect of the command line's, or are refused."""

import json
from argparse import ArgumentParser, Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass import utils as dataclass_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.initialize import add_defaults
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.roberta.model import RobertaModel
from fairseq.models.transformer import TransformerModel
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from fairseq_cli import hydra_train
from omegaconf import OmegaConf

from fairseq_posenc.attention import admin
from fairseq_posenc.errors import UsageError
from fairseq_posenc.models import bert, transformer, transformer_lm  # noqa: F401

# task: (architecture, criterion)
RUNS = {
    "posenc_translation": ("posenc_transformer_tiny", "cross_entropy"),
    "translation": ("posenc_transformer_tiny", "cross_entropy"),
    "language_modeling": ("posenc_transformer_lm_tiny", "cross_entropy"),
    "posenc_masked_lm": ("posenc_bert_tiny", "masked_lm"),
    "posenc_sentence_prediction": ("posenc_bert_tiny", "posenc_sentence_prediction"),
    "posenc_question_answering": ("posenc_bert_tiny", "posenc_question_answering"),
}
PAIRS = "source_lang=de target_lang=en load_alignments=true left_pad_source=false "
PAIRS += "left_pad_target=true max_source_positions=40 max_target_positions=30 upsample_primary=2 "
PAIRS += "truncate_source=true eval_bleu=true eval_tokenized_bleu=true eval_bleu_detok=moses "
PAIRS += """eval_bleu_args='{"beam":2}' eval_bleu_detok_args='{"moses_no_escape":true}' """
PAIRS += "eval_bleu_print_samples=true eval_bleu_remove_bpe=sentencepiece "
# what is given at once, by those who are to get it
GIVEN = [
    ("posenc_translation", PAIRS + "prepend_source_bos=true",
     "position_encoding=shape position_max_shift=7 position_eval_shift=3 "
     "no_embedding_dropout=true no_source_eos=true embedding_initialization=xavier"),
    ("translation", PAIRS, "position_encoding=learned admin_profile=admin.json"),
    ("posenc_translation", "num_batch_buckets=2",
     "position_encoding=cape position_global_shift=3 position_local_shift=0.25 "
     "position_global_scale=2 position_source_scale=1.5"),
    ("posenc_translation", "", "position_encoding=conditional position_kernel_size=5"),
    ("posenc_translation", "max_target_positions=9",
     "position_encoding=abs_scalar position_rank=3 position_sharing=layers"),
    ("posenc_translation", "max_source_positions=9",
     "position_encoding=shaw position_max_distance=4 position_shared_tables=true encoder_layers=3 "
     "position_initialization=zero train_only=encoder.embed_positions*"),
    ("posenc_translation", "", "position_encoding=rotary position_base=500 position_scale=2 "
     "position_scale_method=ntk"),
    ("posenc_translation", "", "position_encoding=randomized position_drawn_below=1100 "
     "position_inner=alibi"),
    ("posenc_translation", "", "position_encoding=unifpe position_separate_draws=true"),
    ("posenc_translation", "", "position_encoding=rotary position_scale_method=yarn "
     "position_scale=2 position_original_length=40"),
    ("language_modeling",
     "sample_break_mode=eos tokens_per_sample=24 output_dictionary_size=5 add_bos_token=true "
     "max_target_positions=20 shorten_method=truncate shorten_data_split_list=train "
     "pad_to_fixed_length=true pad_to_fixed_bsz=true",
     "position_encoding=learned share_decoder_input_output_embed=true decoder_layers=3 "
     "train_only=decoder.layers*"),
    ("language_modeling", "tokens_per_sample=9", "position_encoding=abs_scalar"),
    ("posenc_masked_lm",
     "sample_break_mode=eos tokens_per_sample=24 mask_prob=0.2 leave_unmasked_prob=0.3 "
     "random_token_prob=0.2 freq_weighted_replacement=true mask_whole_words=true",
     "position_encoding=t5 position_num_buckets=8 position_segments=input "
     "train_only=encoder.sentence_encoder.layers*"),
    ("posenc_masked_lm", "", "position_encoding=conditional position_convolve_cls=true "
     "max_positions=20 position_segments=per_head layer_norm_eps=1e-6"),
    ("posenc_sentence_prediction",
     "classification_head_name=other max_positions=24 no_shuffle=true",
     "position_encoding=cape position_mean_normalize=true"),
    ("posenc_question_answering",
     "max_positions=90 stride=20 max_query_length=10 max_answer_length=9 n_best=3",
     "position_encoding=learned"),
]  # fmt: skip
# the Transformer predicts the next token alone
NOT_GIVEN = {"language_modeling": {"self_target", "future_target", "past_target"}}
NOT_GIVEN["translation"] = {"num_batch_buckets"}
OF_DATASETS = {"max_tokens": 100, "skip_invalid_size_inputs_valid_test": True}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with the dictionaries and descriptions of all tasks, and an ADMIN profile."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("dict.txt", "dict.en.txt", "dict.de.txt"):
        (folder / name).write_text("a 2\nb 1\n")
    (folder / "train.en-de.en.idx").touch()  # which languages there are
    description = dict(name="X", kind="classification", best="accuracy", splits={})
    description.update(labels=["no", "yes"], metrics=["accuracy"])
    (folder / "task.json").write_text(json.dumps(description))
    sizes = dict(encoder_layers=2, decoder_layers=2, encoder_embed_dim=64, decoder_embed_dim=64)
    (folder / "admin.json").write_text(admin.unit_profile(Namespace(**sizes)))
    return folder


def parsed(text):
    """Options from what a user may write, as YAML reads them."""
    return dict(OmegaConf.from_dotlist(text.split()))


def of_model(arch, parent=None):
    """The options of a model by name, or those that it adds to the ones of its parent."""
    parser, known = ArgumentParser(add_help=False), ArgumentParser(add_help=False)
    ARCH_MODEL_REGISTRY[arch].add_args(parser)
    if parent:
        parent.add_args(known)
    inherited = {action.dest for action in known._actions}
    return {action.dest: action for action in parser._actions if action.dest not in inherited}


def of_task(task):
    """The task's options; not those that it takes from other groups."""
    fields = TASK_DATACLASS_REGISTRY[task].__dataclass_fields__.items()
    return {k: field for k, field in fields if k != "_name" and "${" not in str(field.default)}


def build(cfg):
    """Begin a training as fairseq does, and return what its parts were given."""
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    model = task.build_model(cfg.model)
    criterion = task.build_criterion(cfg.criterion)
    task_options = OmegaConf.to_container(getattr(task, "cfg", None) or task.args, resolve=True)
    found = dict(cfg.model) if OmegaConf.is_config(cfg.model) else vars(cfg.model)
    names = [*of_model(found["arch"]), "position_signature"]
    return SimpleNamespace(
        task=task_options,
        model={k: found[k] for k in names if found.get(k)},  # false and not there are the same
        also=found,
        criterion=getattr(criterion, "head", None),
        weights={key: weights.shape for key, weights in model.state_dict().items()},
        sum=sum(weights.double().sum().item() for weights in model.state_dict().values()),
    )


def add_defaults_without_ours(cfg):
    """What fairseq does before it imports the plugin."""
    with pytest.MonkeyPatch.context() as patch:
        for known in (TASK_DATACLASS_REGISTRY, REGISTRIES["criterion"]["dataclass_registry"]):
            for name in [name for name in known if name.startswith("posenc_")]:
                patch.delitem(known, name)
        merge = dataclass_utils.merge_with_parent
        merge = getattr(merge, "__wrapped__", merge)
        patch.setattr(dataclass_utils, "merge_with_parent", merge)
        add_defaults(cfg)


def main(cfg):
    """What fairseq_cli.train does when it has imported the plugin."""
    add_defaults(cfg)
    return build(cfg)


def by_hydra(data, task, given):
    """Begin a training with options by group, through fairseq-hydra-train."""
    arch, criterion = RUNS[task]
    groups = {
        "task": {"_name": task, "data": str(data)},
        "model": {"_name": arch},
        "criterion": {"_name": criterion},
        "dataset": OF_DATASETS,
        "common": {"cpu": True, "reset_logging": False},
        "checkpoint": {"restore_file": "none"},
        "distributed_training": {"distributed_world_size": 1},
    }
    for group, added in given.items():
        groups[group] = {**groups[group], **added}
    cfg, begun = OmegaConf.merge(OmegaConf.structured(FairseqConfig), groups), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hydra_train, "pre_main", lambda cfg: begun.append(main(cfg)))
        patch.setattr(hydra_train, "add_defaults", add_defaults_without_ours)
        hydra_train._hydra_main(cfg)
    return begun[0]


def by_command_line(data, task, given):
    """Begin a training with the same options through fairseq-train."""
    arch, criterion = RUNS[task]
    words = [str(data), "--task", task, "--arch", arch, "--criterion", criterion, "--cpu"]
    words += ["--restore-file", "none"]
    for name, value in given.items():
        words.append(f"--{name.replace('_', '-')}")
        words += [] if isinstance(value, bool) else [str(value)]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    return build(convert_namespace_to_omegaconf(args))


@pytest.mark.parametrize("task, for_task, for_model", GIVEN)
def test_options_in_their_groups_are_those_of_the_command_line(
    data, monkeypatch, task, for_task, for_model
):
    monkeypatch.chdir(data)
    given = {"task": parsed(for_task), "model": parsed(for_model)}
    flat = {**given["task"], **given["model"], **OF_DATASETS}
    hydra, line = by_hydra(data, task, given), by_command_line(data, task, flat)
    # programs look for the task's options among the model's
    assert {k: hydra.also[k] for k in given["task"]} == {k: line.also[k] for k in given["task"]}
    assert "save_dir" not in hydra.also  # other groups' options
    if task == "posenc_translation":
        assert hydra.task["skip_invalid_size_inputs_valid_test"]
    for part in ("task", "model", "criterion", "weights", "sum"):
        assert getattr(hydra, part) == getattr(line, part)


def test_every_option_is_among_those_given():
    for arch, parent in (("posenc_transformer", TransformerModel), ("posenc_bert", RobertaModel)):
        given = [k for task, _, of in GIVEN if arch in RUNS[task][0] for k in parsed(of)]
        everywhere = [k for _, _, of in GIVEN for k in parsed(of)]
        for name in of_model(arch, parent):
            assert name in (everywhere if name.startswith("position_") else given), name
    for task in RUNS:
        given = {k for name, of, _ in GIVEN if name == task for k in parsed(of)}
        missing = of_task(task).keys() - given - {"data"}
        assert missing <= NOT_GIVEN.get(task, set()), task


@pytest.mark.parametrize("task", [task for task in RUNS if task.startswith("posenc_")])
def test_options_in_other_groups_are_refused(data, task):
    """Each in one of the groups; also if it stands in two of fairseq's, if the values differ."""
    of_both = {"task": of_task(task), "model": of_model(RUNS[task][0])}
    small = {"dataset": {"train_subset": "train"}, "common": {"seed": 1}, "checkpoint": {}}
    small.update(model={"_name": RUNS[task][0]}, task={"_name": task, "data": str(data)})
    groups = "task", "model", "dataset", "checkpoint", "common"
    for number, name in enumerate([*of_both["task"], *of_both["model"]]):
        declared = {group for group, known in of_both.items() if name in known}
        owners = {"task"} if "task" in declared else declared
        others = [group for group in groups if group not in owners]
        # but for those that it belongs to
        others = [group for group in others if not hasattr(getattr(FairseqConfig, group), name)]
        group, [owner] = others[number % len(others)], owners
        changed = OmegaConf.merge(small, {group: {name: 77}})
        with pytest.raises(UsageError, match=rf"{group}\.{name}\b.*write {owner}\.{name}\b"):
            add_defaults(changed)


@pytest.mark.parametrize(
    "task, group, option, words",
    [
        ("translation", "model", "max_target_positions=9", "write task.max_target_positions"),
        ("posenc_sentence_prediction", "criterion", "classification_head_name=a", "write task.cla"),
    ],
)
def test_a_refusal_says_what_to_write(data, task, group, option, words):
    with pytest.raises(UsageError, match=words):
        by_hydra(data, task, {group: parsed(option)})


def test_options_of_both_may_be_given_twice(data):
    given = {"max_source_positions": 9}
    assert by_hydra(data, "translation", {"task": given, "model": given}).weights

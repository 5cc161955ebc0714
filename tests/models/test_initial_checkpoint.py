"""Runs that begin with a checkpoint: every encoding resumed and fine-tuned with every other."""

import logging
from argparse import Namespace

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.guards import initial_checkpoint, loading, signatures
from tests.tiny import dictionary_of

OURS = {name: {"position_encoding": name} for name in names()}
NO_POSITIONS = {"no_token_positional_embeddings": True}
BOTH_LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
# what a stock model is resumed with, or fine-tuned with if nothing is said
STOCK = {
    "posenc_transformer": {"sinusoidal": {}, "learned": BOTH_LEARNED, "none": NO_POSITIONS},
    "posenc_bert": {"learned": {}, "none": NO_POSITIONS},
}
each_model = pytest.mark.parametrize("model", STOCK)
# class of the model, its encoding, and the options that it was trained with
STARTS = [(model, name, OURS[name]) for model in STOCK for name in names()]
STARTS += [(m, name, {"stock": True, **own}) for m in STOCK for name, own in STOCK[m].items()]
each_start = pytest.mark.parametrize("model, encoding, options", STARTS)
NEXT = dict(zip(names(), [*names()[1:], names()[0]]))


def resuming(folder):
    return {"restore_file": "checkpoint_last.pt", "save_dir": str(folder)}


def fine_tuning(folder):
    path = str(folder / "checkpoint_last.pt")
    return {**resuming(folder / "new"), "finetune_from_model": path}


def weights_of(folder):
    return {**resuming(folder), "reset_optimizer": True}


@each_start
def test_a_run_is_resumed_with_its_own_encoding_alone(
    build, save, tmp_path, model, encoding, options
):
    trained, other = signatures.of_checkpoint(save(model, **options)), NEXT[encoding]
    build(model, **OURS[encoding], **resuming(tmp_path))
    with pytest.raises(UsageError) as caught:
        build(model, **OURS[other], **resuming(tmp_path))
    words = str(caught.value)
    assert trained.startswith(f"position:{encoding}") and trained in words
    assert f"this run has position:{other}|" in words


@pytest.mark.parametrize(
    "encoding, older, other",
    [
        ("rotary", "position:rotary|version:0.1.0", {"position_scale": 2.0}),
        ("rel_scalar", "position:rel_scalar|sharing:none|version:0.1.0", {"no_source_eos": True}),
        (
            "shaw",
            "position:shaw|max-distance:16|shared-tables:no|version:0.1.0",
            {"position_initialization": "zero"},
        ),
    ],
)
def test_older_signatures_have_the_defaults_of_newer_options(
    build, save, tmp_path, encoding, older, other
):
    state = save("posenc_transformer", **OURS[encoding])
    state["cfg"]["model"].position_signature = older
    torch.save(state, tmp_path / "checkpoint_last.pt")
    build("posenc_transformer", **OURS[encoding], **resuming(tmp_path))
    with pytest.raises(UsageError, match="trained with .*, this run has"):
        build("posenc_transformer", **OURS[encoding], **other, **resuming(tmp_path))


OLDER = {
    "posenc_transformer": "position:conditional|kernel-size:3|version:0.1.0",
    "posenc_bert": "position:conditional|kernel-size:3|segments:none|version:0.1.0",
}


@each_model
def test_older_conditional_models_go_on_as_they_were_trained(build, save, tmp_path, caplog, model):
    """BERT's convolved [CLS], and had no option for it; nothing changes without a word."""
    state = save(model, **OURS["conditional"])
    saved = state["cfg"]["model"]
    saved.position_signature = OLDER[model]
    torch.save(state, tmp_path / "checkpoint_last.pt")
    is_bert = model == "posenc_bert"
    convolved = {"position_convolve_cls": True} if is_bert else {}
    build(model, **OURS["conditional"], **convolved, **resuming(tmp_path))
    if is_bert:
        with pytest.raises(UsageError, match="convolve-cls:yes, this run has .*convolve-cls:no"):
            build(model, **OURS["conditional"], **resuming(tmp_path))
    assert build(model, **fine_tuning(tmp_path)).signature.count("convolve-cls:yes") == is_bert
    # as when it is loaded to be evaluated
    caplog.clear()
    loaded = build(model, **vars(saved))
    assert loaded.signature.count("convolve-cls:yes") == is_bert
    assert ("convolve [CLS]" in caplog.text) == is_bert


def is_of_positions(key):
    # the last one of fairseq 0.12.2, which holds no position
    is_weight = "embed_positions" in key and not key.endswith("_float_tensor")
    return is_weight or ".segments." in key


def load_and_compare(model, state):
    """Load a checkpoint and check which weights are its own and which the model's."""
    fresh = {key: weights.clone() for key, weights in model.state_dict().items()}
    model.load_state_dict(dict(state["model"]))
    loaded = model.state_dict()
    for key, weights in loaded.items():
        if not is_of_positions(key):
            assert torch.equal(weights, state["model"][key]), key
    return fresh, loaded


@each_start
def test_every_encoding_is_fine_tuned_to_itself_and_to_another(
    build, save, tmp_path, caplog, model, encoding, options
):
    state, other = save(model, **options), NEXT[encoding]
    trained = signatures.of_checkpoint(state)
    ways = [(fine_tuning, {}), (weights_of, {})]
    ways += [(fine_tuning, OURS[chosen]) for chosen in (encoding, other)]
    for begin, words in ways:
        caplog.clear()
        with caplog.at_level(logging.INFO, "fairseq_posenc"):
            built = build(model, **words, **begin(tmp_path))
            fresh, loaded = load_and_compare(built, state)
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        named = " ".join(r.getMessage() for r in caplog.records if r.levelno == logging.INFO)
        new = {key for key in loaded if is_of_positions(key)}
        if words == OURS[other]:
            [warning] = warnings
            assert trained in warning and f"this run has position:{other}|" in warning
            assert all(key in named for key in new.union(filter(is_of_positions, state["model"])))
        else:
            assert warnings == [] and "afresh" not in named
            assert signatures.same(built.args.position_signature, trained)
        for key in new:
            assert torch.equal(loaded[key], (fresh if warnings else state["model"])[key]), key


def test_the_options_of_a_checkpoint_are_kept_if_no_encoding_is_given(build, save, tmp_path):
    trained = {"position_encoding": "cape", "position_source_scale": 1.1}
    save("posenc_bert", **trained, position_global_shift=7.0, position_segments="per_head")
    kept = build("posenc_bert", **fine_tuning(tmp_path)).args.position_signature
    for part in ("cape|", "global-shift:7|", "source-scale:1.1|", "segments:per_head|"):
        assert part in kept
    changed = build("posenc_bert", position_global_shift=3.0, **fine_tuning(tmp_path)).args
    assert "global-shift:3|" in changed.position_signature
    assert "source-scale:1.1|" in changed.position_signature
    other = build("posenc_bert", position_encoding="t5", **fine_tuning(tmp_path)).args
    assert "position:t5" in other.position_signature
    assert "segments:per_head" in other.position_signature


def test_buffers_that_older_versions_of_fairseq_saved_are_left_out(build, save):
    state = save("posenc_transformer", stock=True)
    for name in ("weights", "_float_tensor"):
        state["model"][f"decoder.embed_positions.{name}"] = torch.zeros(1)
    load_and_compare(build("posenc_transformer", **OURS["sinusoidal"]), state)


@pytest.mark.parametrize(
    "model, options",
    [
        ("posenc_transformer", {"encoder_learned_pos": True}),
        ("posenc_bert", {"encoder_learned_pos": False}),
    ],
)
def test_positions_of_fairseq_that_are_none_of_ours_must_be_replaced(
    build, save, tmp_path, caplog, model, options
):
    state = save(model, stock=True, **options)
    with pytest.raises(UsageError, match="not one of ours; say with --position-encoding"):
        build(model, **fine_tuning(tmp_path))
    for encoding in ("sinusoidal", "learned"):
        caplog.clear()
        load_and_compare(build(model, **OURS[encoding], **fine_tuning(tmp_path)), state)
        assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1


def test_a_table_of_another_size_starts_afresh_where_options_say_so(build, save, tmp_path):
    state = save("posenc_bert", **OURS["shaw"], position_max_distance=4)
    built = build("posenc_bert", **OURS["shaw"], position_max_distance=8, **fine_tuning(tmp_path))
    fresh, loaded = load_and_compare(built, state)
    keys = [key for key in loaded if is_of_positions(key)]
    assert keys and all(torch.equal(loaded[key], fresh[key]) for key in keys)


def test_parameters_of_one_name_and_size_are_not_taken_from_another_encoding(build, save, tmp_path):
    state = save("posenc_transformer", **OURS["rel_scalar"], position_sharing="layers")
    built = build("posenc_transformer", **OURS["t5"], **fine_tuning(tmp_path))
    fresh, loaded = load_and_compare(built, state)
    key = "decoder.embed_positions.scalars"
    assert state["model"][key].shape == fresh[key].shape
    assert torch.equal(loaded[key], fresh[key])


@pytest.mark.parametrize(
    "change, told",
    [
        ({"encoder_embed_dim": 32, "decoder_embed_dim": 32}, "16 there, .* here; give the --arch"),
        ({"types": 20}, r"the vocabulary \(dict.txt\) is another one"),
    ],
)
def test_another_width_is_not_another_vocabulary(build, save, tiny_task, change, told):
    state = save("posenc_transformer", **OURS["cape"])
    for side in ("source", "target") if "types" in change else ():
        setattr(tiny_task, f"{side}_dictionary", dictionary_of([]))
    with pytest.raises(UsageError, match=told):
        build("posenc_transformer", **OURS["cape"], **change).load_state_dict(state["model"])


def test_another_version_is_a_warning(build, save, tmp_path, caplog):
    state = save("posenc_bert", **OURS["tupe"])
    options = state["cfg"]["model"]
    options.position_signature = options.position_signature.replace("version:", "version:9.")
    torch.save(state, tmp_path / "checkpoint_last.pt")
    build("posenc_bert", **OURS["tupe"], **resuming(tmp_path))
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1 and "another version" in warnings[0]


@each_model
@pytest.mark.parametrize("side", ["source", "target"])
def test_dictionaries_in_another_order_are_refused(
    build, save, tiny_task, tmp_path, caplog, model, side
):
    saved = save(model, **OURS["shaw"])
    trained = saved["cfg"]["model"]
    ways = [{**OURS["shaw"], **resuming(tmp_path)}, fine_tuning(tmp_path), vars(trained)]
    symbols = tiny_task.source_dictionary.symbols[4:]
    setattr(tiny_task, f"{side}_dictionary", dictionary_of(symbols[::-1]))
    for options in ways:
        if (model, side) == ("posenc_bert", "target"):
            build(model, **options)  # it has one dictionary
            continue
        with pytest.raises(UsageError, match="the vocabulary is not the one that .* trained with"):
            build(model, **options)
    del trained.dictionary_hash  # as in older versions
    torch.save(saved, tmp_path / "checkpoint_last.pt")
    caplog.set_level(logging.INFO)
    for options in (*ways[:2], vars(trained)):
        build(model, **options)
    assert caplog.text.count("does not record its dictionaries") == 3


def test_which_checkpoint_a_run_begins_with(build, save, tmp_path):
    save("posenc_bert", **OURS["tupe"])
    folder, path = str(tmp_path), str(tmp_path / "checkpoint_last.pt")
    default = {"restore_file": "checkpoint_last.pt", "save_dir": "elsewhere"}
    found = {
        "nothing": ({}, None),
        "a new run": (default, None),
        "a missing file": ({**default, "restore_file": "missing.pt"}, None),
        "a run that goes on": ({**default, "save_dir": folder}, (path, False)),
        "a file": ({**default, "restore_file": path}, (path, False)),
        "a file's weights": ({**default, "restore_file": path, "reset_optimizer": True},
                             (path, True)),
        "weights": ({**default, "finetune_from_model": path}, (path, True)),
        "another start": ({**default, "continue_once": path}, (path, False)),
        "fine-tuning that goes on": (
            {**default, "save_dir": folder, "finetune_from_model": "gone.pt"}, (path, False)),
    }  # fmt: skip
    for what, (options, expected) in found.items():
        initial = initial_checkpoint.find_initial_checkpoint(Namespace(**options))
        assert (initial and initial[:2]) == expected, what
    with pytest.raises(UsageError, match="cannot read checkpoint gone.pt"):
        initial_checkpoint.find_initial_checkpoint(
            Namespace(**default, finetune_from_model="gone.pt")
        )


def test_what_a_model_refuses_is_shown_and_other_errors_are_one_line():
    def load(error):
        with loading.one_line("cannot begin"):
            try:
                raise error
            except Exception:
                # as fairseq does
                raise Exception("Cannot load model parameters from checkpoint") from None

    assert hasattr(checkpoint_utils.load_checkpoint, "__wrapped__")
    for error, told in (
        (UsageError("of another width"), "^of another width"),
        (KeyError("encoder"), "^cannot begin: Cannot load model parameters"),
    ):
        with pytest.raises(UsageError, match=told):
            load(error)

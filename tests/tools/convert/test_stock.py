"""Export to stock fairseq: what loads without the plugin translates as ours does, or is refused."""

import json
from argparse import Namespace

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.models.transformer import TransformerModel

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.encodings import names
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.checkpoint import ALL, read_checkpoint
from fairseq_posenc.tools.convert.stock_fairseq import to_fairseq

INSIDE = "inside self-attention"
REFUSED = {
    "conditional": "convolution",
    "transformer_xl": "distances",
    "tupe": "absolute positions",
    "abs_scalar": "absolute positions",
    **dict.fromkeys(["shaw", "t5", "rel_scalar", "rotary", "alibi", "kerple"], INSIDE),
}


def load(path, data):
    models, cfg, _ = load_model_ensemble_and_task([str(path)], arg_overrides={"data": str(data)})
    return models[0].eval(), cfg


def plain(value):
    """Whether torch's safest way of loading reads a value."""
    if isinstance(value, dict):
        return type(value) is dict and all(plain(v) for pair in value.items() for v in pair)
    if isinstance(value, (list, tuple)):
        return all(map(plain, value))
    return value is None or isinstance(value, (str, int, float, torch.Tensor))


# encoding, options of the model, and whether source and target get a table of vectors
CASES = [
    *((name, {}, (name == "learned",) * 2) for name in names()),
    ("shape", {"position_eval_shift": 7, "share_all_embeddings": True}, (True, True)),
    ("cape", {"position_source_scale": 1.1, "share_all_embeddings": True}, (True, False)),
    ("sinusoidal", {"position_source_scale": 0.5}, (True, False)),
    ("cape", {"encoder_normalize_before": True, "decoder_normalize_before": True}, (False, False)),
    (
        "cape",
        {"layernorm_embedding": True, "activation_fn": "gelu", "no_scale_embedding": True},
        (False, False),
    ),
    (
        "cape",
        {"encoder_embed_dim": 32, "decoder_embed_dim": 48, "encoder_layers": 1},
        (False, False),
    ),
    (
        "cape",
        {"share_decoder_input_output_embed": True, "decoder_attention_heads": 4},
        (False, False),
    ),
]


@pytest.mark.parametrize("encoding, options, tables", CASES)
def test_each_model_is_translated_alike_or_refused(
    checkpoint, data, sources, translate, agree, tmp_path, encoding, options, tables
):
    path, model = checkpoint(encoding, **options)
    output = tmp_path / "stock.pt"
    if encoding in REFUSED:
        with pytest.raises(UsageError, match=REFUSED[encoding]) as caught:
            to_fairseq(str(path), str(output))
        assert encoding in str(caught.value)
        assert not output.exists()
        return
    notes = to_fairseq(str(path), str(output))
    stock, cfg = load(output, data)
    assert type(stock) is TransformerModel
    assert (cfg.model.encoder_learned_pos, cfg.model.decoder_learned_pos) == tables
    assert tuple("table" in note for note in notes) == tables
    agree(translate(stock, sources), translate(model, sources))


def test_nothing_of_ours_is_in_the_file(checkpoint, tmp_path):
    path, _ = checkpoint("shape", position_max_shift=5)
    to_fairseq(str(path), str(tmp_path / "stock.pt"))
    state = load_checkpoint(tmp_path / "stock.pt")
    assert plain(state)
    assert "posenc" not in str(state["cfg"]) and "position_" not in str(state["cfg"])
    assert state["cfg"]["common"]["user_dir"] is None
    assert state["last_optimizer_state"] is None
    assert state["optimizer_history"][0]["num_updates"] == 7


def test_half_precision_stays(checkpoint, tmp_path):
    path, _ = checkpoint("learned")
    state = load_checkpoint(path)
    state["model"] = {
        k: v.half() if v.is_floating_point() else v for k, v in state["model"].items()
    }
    torch.save(state, path)
    to_fairseq(str(path), str(tmp_path / "stock.pt"))
    written = load_checkpoint(tmp_path / "stock.pt")["model"]
    for name in ("encoder.embed_tokens.weight", "encoder.embed_positions.weight"):
        assert written[name].dtype == torch.float16
    table = written["encoder.embed_positions.weight"]
    assert torch.equal(table[2:], state["model"]["encoder.embed_positions.weight"][2:])


def test_bos_before_sources_is_refused_unless_the_text_will_have_it(
    checkpoint, data, sources, translate, agree, tmp_path
):
    path, model = checkpoint("sinusoidal", prepend_source_bos=True)
    output = str(tmp_path / "stock.pt")
    with pytest.raises(UsageError, match="--prepend-source-bos.*--bos-in-text"):
        to_fairseq(str(path), output)
    assert "<s> " in to_fairseq(str(path), output, bos_in_text=True)[-1]
    stock, cfg = load(output, data)
    assert "prepend_source_bos" not in cfg.task
    # what the stock task makes of a line that starts with '<s> '
    dictionary = load_model_ensemble_and_task([output], {"data": str(data)})[2].source_dictionary
    line = dictionary.encode_line("<s> w5 w9", append_eos=True, add_if_not_exist=False)
    assert line.tolist() == [0, 9, 13, 2]
    agree(translate(stock, sources, bos=True), translate(model, sources, bos=True))


def test_an_encoder_that_sees_no_eos_is_refused(checkpoint, tmp_path):
    path, _ = checkpoint("sinusoidal", no_source_eos=True)
    with pytest.raises(UsageError, match="trained with --no-source-eos"):
        to_fairseq(str(path), str(tmp_path / "stock.pt"))


def test_what_is_there_is_not_overwritten_by_accident(checkpoint, tmp_path):
    path, _ = checkpoint("none")
    output = tmp_path / "stock.pt"
    output.write_text("precious")
    with pytest.raises(UsageError, match="--force"):
        to_fairseq(str(path), str(output))
    with pytest.raises(UsageError, match="is an input, and would be lost"):
        to_fairseq(str(path), str(path), force=True)
    assert output.read_text() == "precious"
    to_fairseq(str(path), str(output), force=True)
    assert load_checkpoint(output)["cfg"]["model"]["no_token_positional_embeddings"] is True


def test_weights_that_stock_fairseq_lacks_are_named(checkpoint, tmp_path):
    path, _ = checkpoint("sinusoidal")
    state = load_checkpoint(path)
    encoder, decoder = ["attention", "fc"], ["self", "encoder", "fc"]
    omegas = {
        side: [{f"{name}_ratio_change": 2.0 for name in names_}] * 2
        for side, names_ in (("encoder", encoder), ("decoder", decoder))
    }
    profile = {"version": 1, "channels": {"encoder": 64, "decoder": 64}, "omegas": omegas}
    state["cfg"]["model"].admin_profile = json.dumps(profile, separators=(",", ":"))
    for side, names_ in (("encoder", encoder), ("decoder", decoder)):
        for number in range(2):
            for name in names_:
                key = f"{side}.layers.{number}.{name}_ratio_change"
                state["model"][key] = torch.full((64,), 2.0)
    torch.save(state, path)
    with pytest.raises(UsageError, match="stock fairseq has no encoder.layers.0.*ratio_change"):
        to_fairseq(str(path), str(tmp_path / "stock.pt"))


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda state: state["cfg"]["model"].__setattr__("arch", "roberta"), "--arch roberta"),
        (lambda state: state.pop("cfg"), "not a checkpoint of fairseq-train"),
        (lambda state: state["model"].pop("decoder.layers.1.fc1.bias"), "not fit .* no decoder"),
        (lambda state: state["model"].pop("encoder.embed_tokens.weight"), "not fit"),
        (
            lambda state: state["cfg"]["model"].__setattr__("position_encoding", "x"),
            "not fit .*'x'",
        ),
    ],
)
def test_other_checkpoints_are_refused_in_one_line(checkpoint, tmp_path, spoil, words):
    path, _ = checkpoint("sinusoidal")
    state = load_checkpoint(path)
    spoil(state)
    torch.save(state, path)
    with pytest.raises(UsageError, match=words) as caught:
        to_fairseq(str(path), str(tmp_path / "stock.pt"))
    assert str(path) in str(caught.value)


def test_the_command_line_needs_no_data(posenc, checkpoint, tmp_path):
    path, _ = checkpoint("cape", position_source_scale=1.1)
    output = tmp_path / "stock.pt"
    printed = posenc("export", "--path", path, "--to", "fairseq", "--output", output)
    assert printed.out.splitlines() == [
        f"{output}: written",
        "encoder: positions as a table (--encoder-learned-pos) of 48 tokens",
        "decoder: sinusoids, up to --max-target-positions",
    ]
    assert output.is_file()


@pytest.mark.parametrize(
    "program, option",
    [
        ("safetensors", "--check"),
        ("ctranslate2", "--check"),
        ("huggingface", "--quantization int8"),
        ("fairseq", "--positions 9"),
        ("safetensors", "--bos-in-text"),
    ],
)
def test_an_option_of_another_program_is_refused(posenc, tmp_path, program, option):
    """A model would pass for compared, or for quantised."""
    command = f"--path a.pt --to {program} --data bin --output {tmp_path}/b {option}"
    with pytest.raises(UsageError, match=f"{option.split()[0]} is for --to "):
        posenc("export", *command.split())


@pytest.mark.parametrize("state", [
    {"args": Namespace(arch="transformer", task="translation")},  # fairseq 0.9
    {"cfg": {"model": {"_name": "transformer_lm"}, "task": {}}},
    {"args": None, "cfg": {"model": Namespace(arch="roberta"), "task": {}}},
])  # fmt: skip
def test_models_of_stock_fairseq_are_told_how_they_can_be_exported(tmp_path, state):
    torch.save({**state, "model": {"a": torch.zeros(1)}}, tmp_path / "model.pt")
    with pytest.raises(UsageError, match=r"not --arch '?\w+.*; train from it with one of these"):
        read_checkpoint(str(tmp_path / "model.pt"), ALL)

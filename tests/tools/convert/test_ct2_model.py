"""Export to CTranslate2: it computes what our model computes, or the export is refused."""

import json
import sys

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.encodings import StackConfig, build, names
from fairseq_posenc.encodings.base import ExportedPositions
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.convert.ctranslate2.model import to_ctranslate2
from fairseq_posenc.tools.convert.ctranslate2.positions import (
    clip_distances,
    t5_buckets,
    to_ct2_tables,
)
from tests.tools.convert.conftest import NORMS_BEFORE

ctranslate2 = pytest.importorskip("ctranslate2")
EOS = 2
SHORT = {"position_num_buckets": 8, "position_max_distance": 6}
CASES = [
    *[(name, {}) for name in names()],
    ("shape", {"position_eval_shift": 7, "prepend_source_bos": True}),
    ("cape", {"position_source_scale": 1.3, **NORMS_BEFORE}),
    ("shaw", {"position_max_distance": 3, "position_shared_tables": True}),
    ("t5", {"position_sharing": "layers", **SHORT}),
    ("t5", {"position_sharing": "none", **SHORT, **NORMS_BEFORE}),
    ("t5", {"position_sharing": "heads", **SHORT}),
    ("rel_scalar", {"position_sharing": "layers", "max_source_positions": 9}),
    ("rel_scalar", {"max_source_positions": 9, "max_target_positions": 5}),
    ("alibi", {"encoder_embed_dim": 48, "encoder_attention_heads": 3, "decoder_embed_dim": 32}),
    ("rotary", {"encoder_embed_dim": 8, "encoder_attention_heads": 4, "decoder_layers": 1}),
    ("rotary", {"position_base": 300.0, "position_scale": 3.0, "encoder_attention_heads": 1}),
    ("rotary", {"position_scale": 4.0, "position_scale_method": "ntk"}),
    ("kerple", {"position_sharing": "layers", **NORMS_BEFORE}),
    ("randomized", {"position_inner": "rotary"}),
    ("randomized", {"position_inner": "kerple"}),
    ("learned", {"share_all_embeddings": True, "layernorm_embedding": True}),
    ("none", {"activation_fn": "gelu", "no_scale_embedding": True, "decoder_attention_heads": 4}),
    ("sinusoidal", {"no_decoder_final_norm": True, **NORMS_BEFORE}),
]


class Loaded:
    """A CTranslate2 model in memory, asked in numbers of types."""

    def __init__(self, folder, kind="default"):
        self.translator = ctranslate2.Translator(str(folder), intra_threads=1, compute_type=kind)
        self.types = {}
        for side in ("source", "target"):
            own, shared = folder / f"{side}_vocabulary.json", folder / "shared_vocabulary.json"
            self.types[side] = json.loads((own if own.exists() else shared).read_text())

    def spell(self, side, sentences):
        return [[self.types[side][number] for number in sentence] for sentence in sentences]

    def greedy(self, sources, length):
        """The tokens of the best path, and the mean of their log-probabilities."""
        results = self.translator.translate_batch(
            self.spell("source", sources), beam_size=1, max_decoding_length=length,
            min_decoding_length=0, return_scores=True, return_end_token=True,
        )  # fmt: skip
        numbers = {type_: number for number, type_ in enumerate(self.types["target"])}
        return [([numbers[t] for t in r.hypotheses[0]], r.scores[0]) for r in results]

    def score(self, sources, targets):
        arguments = self.spell("source", sources), self.spell("target", targets)
        return [result.log_probs for result in self.translator.score_batch(*arguments)]


def refusal(encoding):
    """Why an encoding cannot be told in tables, in its own words; None if it can."""
    try:
        build(encoding, StackConfig(8)).export_tables(4)
    except ValueError as error:
        return str(error)
    return None


@torch.no_grad()
def own_scores(model, source, target):
    """Our log-probabilities of the tokens of a target, given those before them."""
    output = model(torch.tensor([source]), None, torch.tensor([[EOS, *target[:-1]]]))
    chances = model.get_normalized_probs(output, log_probs=True)[0]
    return chances.gather(1, torch.tensor(target).unsqueeze(1))[:, 0].tolist()


@pytest.mark.parametrize("encoding, options", CASES)
def test_each_encoding_is_computed_alike_or_refused(
    checkpoint, data, sources, translate, tmp_path, encoding, options
):
    path, model = checkpoint(encoding, **options)
    folder = tmp_path / "ct2"
    reason = refusal(encoding)
    if reason:
        with pytest.raises(UsageError) as caught:
            to_ctranslate2(str(path), str(folder), str(tmp_path / "bin"))
        assert str(caught.value).endswith(f"--position-encoding {encoding}: {reason}")
        assert [entry.name for entry in tmp_path.iterdir() if "ct2" in entry.name] == []
        return
    to_ctranslate2(str(path), str(folder), str(tmp_path / "bin"))
    loaded, bos = Loaded(folder), options.get("prepend_source_bos", False)
    targets = [[min(number, 35) for number in reversed(source)] for source in sources]
    whole, steps = loaded.score(sources, targets), loaded.greedy(sources, 12)
    # the tokens that our own search finds when it may not end before
    expected = translate(model, sources, beam=1, longest=12, shortest=12, bos=bos)
    for row, source in enumerate(sources):
        source = [0] * bos + source + [EOS]
        own = own_scores(model, source, targets[row] + [EOS])
        assert whole[row] == pytest.approx(own, rel=1e-5, abs=5e-4)
        path, score = steps[row]
        assert score == pytest.approx(
            sum(own_scores(model, source, path)) / len(path), rel=1e-5, abs=5e-4
        )
        length = len(path) - (path[-1] == EOS)
        assert path[:length] == expected[row][0][0][:length]


def test_every_kind_of_quantization_is_written_and_close(checkpoint, sources, tmp_path):
    path, model = checkpoint("shaw")
    target = [5, 6, 7]
    own = own_scores(model, sources[0] + [EOS], target + [EOS])
    sizes = {}
    # computed in float32: how well a processor multiplies whole numbers is not ours
    for kind, rounding in (("float32", 1e-4), ("float16", 0.05), ("int16", 0.7), ("int8", 0.7)):
        folder = tmp_path / kind
        to_ctranslate2(str(path), str(folder), str(tmp_path / "bin"), quantization=kind)
        sizes[kind] = (folder / "model.bin").stat().st_size
        found = Loaded(folder, "float32").score(sources[:1], [target])[0]
        assert found == pytest.approx(own, abs=rounding)
    assert sizes["int8"] < sizes["float16"] < sizes["float32"]
    with pytest.raises(UsageError, match="--quantization int3 is not known; choose int8, "):
        to_ctranslate2(str(path), str(tmp_path / "x"), str(tmp_path / "bin"), quantization="int3")


def test_positions_end_where_it_was_said(checkpoint, tmp_path):
    path, _ = checkpoint("sinusoidal")
    data = str(tmp_path / "bin")
    notes = to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"), positions=10)
    assert notes == ["positions for sentences of up to 10 tokens, BOS and EOS included"]
    loaded = Loaded(tmp_path / "ct2")
    assert len(loaded.score([[5] * 9], [[5] * 9])[0]) == 10
    with pytest.raises(RuntimeError, match="No position encodings"):
        loaded.score([[5] * 10], [[5]])
    assert "1024 tokens" in to_ctranslate2(str(path), str(tmp_path / "usual"), data)[0]
    longer, _ = checkpoint("sinusoidal", max_source_positions=1500, name="long.pt")
    assert "1500 tokens" in to_ctranslate2(str(longer), str(tmp_path / "longer"), data)[0]
    by_distance, _ = checkpoint("t5", name="t5.pt")
    assert (
        "2 tokens" in to_ctranslate2(str(by_distance), str(tmp_path / "t5"), data, positions=1)[0]
    )


def test_a_model_that_is_there_is_replaced_on_demand_only(checkpoint, tmp_path):
    path, _ = checkpoint("sinusoidal")
    folder = tmp_path / "ct2"
    to_ctranslate2(str(path), str(folder), str(tmp_path / "bin"))
    before = (folder / "model.bin").read_bytes()
    other, _ = checkpoint("sinusoidal", seed=2, name="other.pt")
    with pytest.raises(UsageError, match="--force"):
        to_ctranslate2(str(other), str(folder), str(tmp_path / "bin"))
    assert (folder / "model.bin").read_bytes() == before
    to_ctranslate2(str(other), str(folder), str(tmp_path / "bin"), force=True)
    assert (folder / "model.bin").read_bytes() != before
    assert sorted(entry.name for entry in tmp_path.iterdir() if "ct2" in entry.name) == ["ct2"]
    precious = tmp_path / "precious"
    precious.mkdir()
    with pytest.raises(UsageError, match="not a CTranslate2 model"):
        to_ctranslate2(str(path), str(precious), str(tmp_path / "bin"), force=True)


def test_other_dictionaries_are_refused(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    with pytest.raises(UsageError, match="there is no .*dict.en.txt.*--data"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), data=str(tmp_path))
    words = (data / "dict.en.txt").read_text(encoding="utf-8")
    lines = reversed(words.splitlines())
    (data / "dict.en.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(UsageError, match="other symbols than in training, or another order"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(data))
    (data / "dict.de.txt").write_text("w0 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="dict.de.txt has 5 types.*the model 36"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))


def test_types_of_the_same_name_are_refused(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    words = (data / "dict.de.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    words[0] = "<unk> 1 #fairseq:overwrite\n"
    (data / "dict.de.txt").write_text("".join(words), encoding="utf-8")
    with pytest.raises(UsageError, match="dict.de.txt names 1 types as others.*'<unk>'"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(data))


def test_languages_that_training_found_in_the_data_are_found_again(checkpoint, data, tmp_path):
    path, _ = checkpoint("sinusoidal")
    state = load_checkpoint(path)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, path)
    with pytest.raises(UsageError, match="no binarised text in .* --data"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))
    (data / "train.en-de.en.idx").touch()
    to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))
    vocabulary = json.loads((tmp_path / "ct2" / "source_vocabulary.json").read_text("utf-8"))
    assert len(vocabulary) == 40
    (data / "train.en-fr.en.idx").touch()
    with pytest.raises(UsageError, match="has several pairs of languages, en-de, en-fr, and the"):
        to_ctranslate2(str(path), str(tmp_path / "again"), str(tmp_path / "bin"))
    # a model of many languages has one dictionary, and a token for each language behind it
    many = {"langs": ["de", "en", "fr"], "lang_pairs": "en-de,en-fr"}
    state["cfg"]["task"].update(many, _name="posenc_multilingual")
    torch.save(state, path)
    with pytest.raises(UsageError, match="dict.en.txt has 43 types.*, the model 40"):
        to_ctranslate2(str(path), str(tmp_path / "again"), str(tmp_path / "bin"))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"activation_fn": "linear"}, "--activation-fn linear"),
        ({"cross_self_attention": True}, "--cross-self-attention"),
        ({"no_cross_attention": True}, "needs decoder.layers.0.encoder_attn.q_proj.weight"),
        ({"scale_attn": True}, "no place for decoder.layers.0.attn_ln"),
        ({"adaptive_softmax_cutoff": "10,20"}, "needs decoder.output_projection.weight"),
    ],
)
def test_models_that_ctranslate2_cannot_hold_are_refused(checkpoint, tmp_path, options, words):
    path, _ = checkpoint("sinusoidal", **options)
    with pytest.raises(UsageError, match=words):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))


def test_positions_of_two_kinds_and_odd_rotations_are_refused():
    stack = StackConfig(8)
    table, relative = torch.zeros(5, 8), torch.zeros(1, 3, 8)
    for portable in (
        ExportedPositions(input=table, relative_keys=relative),
        ExportedPositions(bias=torch.zeros(1, 1, 9), relative_keys=relative),
        ExportedPositions(relative_values=relative),
    ):
        with pytest.raises(UsageError, match="no place"):
            to_ct2_tables(portable, stack, 5)
    with pytest.raises(UsageError, match="other speeds"):
        to_ct2_tables(ExportedPositions(rotation=torch.tensor([1.0, 0.5, 0.1, 0.05])), stack, 5)
    speeds = 500 ** (-torch.arange(4) / 4)
    assert to_ct2_tables(ExportedPositions(rotation=speeds), stack, 5).options["rotary_base"] == 500


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("name", ["t5", "rel_scalar", "alibi"])
def test_a_bias_by_distance_is_cut_where_it_ends_to_change(name, decoder):
    encoding = build(name, StackConfig(8, decoder=decoder, heads=2, max_length=6))
    bias = encoding.export_tables(200).bias[0]
    short = clip_distances(bias, decoder)
    farthest = short.size(-1) // 2
    expected = {"t5": range(80, 129), "rel_scalar": [5], "alibi": [199]}
    assert farthest in expected[name]
    table, k = t5_buckets(short, decoder)
    assert k == farthest and table.size(-1) == (2 if decoder else 4) * k
    for distance in range(0 if decoder else -199, 200):
        # T5's rule where half of the buckets are for one distance each
        bucket = abs(distance) if abs(distance) < k else 2 * k - 1
        found = table[:, bucket + 2 * k * (distance < 0)]
        assert torch.equal(found, bias[:, 199 + distance])


def test_without_ctranslate2_one_line_says_what_to_install(checkpoint, tmp_path, monkeypatch):
    path, _ = checkpoint("sinusoidal")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UsageError, match="pip install ctranslate2"):
        to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))

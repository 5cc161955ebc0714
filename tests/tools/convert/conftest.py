"""Tiny checkpoints on disk, as training writes them, and the search that translates with them."""

import json
import string
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.tools.convert.huggingface.load import import_model
from recipes.exports.random_models import BERT, LANGUAGE_MODEL, ExportedClass, write_checkpoint
from tests.tiny import build_model, checkpoint_of, dictionary_of

PAD, EOS = 1, 2
NORMS_BEFORE = {"encoder_normalize_before": True, "decoder_normalize_before": True}
PRE_NORM = {**NORMS_BEFORE, "share_all_embeddings": True}


def dictionary(types):
    return dictionary_of(types - 4)


def never_pad(decoder):
    """Make padding unlikely: fairseq never chooses it, CTranslate2 does as with any type."""
    types = decoder.output_projection.weight.data
    types[:, 0], types[PAD, 0] = 0, -100
    last = decoder.layers[-1]
    if decoder.layer_norm is None and last.normalize_before:
        # nothing keeps these scores small
        types *= 0.02
        last.fc2.bias.data[0] = 1000
    else:
        norm = decoder.layer_norm or last.final_layer_norm
        norm.weight.data[0], norm.bias.data[0] = 0, 10


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Nothing is fetched."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def data(tmp_path):
    """A folder with dictionaries of 40 source and 36 target types."""
    folder = tmp_path / "bin"
    folder.mkdir()
    dictionary(40).save(str(folder / "dict.en.txt"))
    dictionary(36).save(str(folder / "dict.de.txt"))
    return folder


@pytest.fixture
def checkpoint(tmp_path, data):
    """A function that writes a checkpoint and returns its path and its model.

    All parameters are strong, so that positions matter and translations are sharp. The dictionaries
    are those of the folder ``prepared``, if one is given.
    """

    def write(encoding, seed=1, name="model.pt", prepared=None, target_lang="de", **chosen):
        options = {"max_source_positions": 48, "max_target_positions": 40, **chosen}
        options.update(arch="posenc_transformer_tiny", position_encoding=encoding)
        shared = chosen.get("share_all_embeddings", False)
        task = SimpleNamespace(
            source_dictionary=dictionary(40), target_dictionary=dictionary(40 if shared else 36)
        )
        if shared:
            task.source_dictionary.save(str(data / "dict.de.txt"))
        if prepared:
            for side, language in {"source": "en", "target": target_lang}.items():
                types = Dictionary.load(f"{prepared}/dict.{language}.txt")
                setattr(task, f"{side}_dictionary", types)
        model = build_model("transformer", task, seed, **options).eval()
        for parameter_name, parameter in model.named_parameters():
            width = 1.0 if "encoder_attn" in parameter_name or ".fc" in parameter_name else 0.3
            parameter.data += width * torch.randn(parameter.shape)
        if model.decoder.output_projection is not None:
            never_pad(model.decoder)
        task_options = {
            "_name": "posenc_translation", "data": str(prepared or data), "source_lang": "en",
            "target_lang": target_lang, "dataset_impl": None, "required_seq_len_multiple": 1,
            "train_subset": "train",
            "prepend_source_bos": chosen.get("prepend_source_bos", False),
        }  # fmt: skip
        cfg = {"common": {"user_dir": "fairseq_posenc", "seed": 1}, "model": model.options}
        cfg.update(task=task_options, optimizer={"_name": "posenc_radam"})
        optimizer = {"last_optimizer_state": {"large": torch.zeros(3)}}
        torch.save(checkpoint_of(cfg, model.state_dict(), **optimizer), tmp_path / name)
        return tmp_path / name, model

    return write


@pytest.fixture
def bert_checkpoint(tmp_path, data):
    """A function that writes a checkpoint of BERT and returns its path and its model."""

    def write(encoding, **chosen):
        dictionary(40).save(str(data / "dict.txt"))
        bert, path = ExportedClass(BERT, encoding, chosen), tmp_path / "bert.pt"
        return path, write_checkpoint(bert, str(path), str(data))

    return write


@pytest.fixture
def lm_checkpoint(tmp_path, data):
    """A function that writes a checkpoint of a language model, and returns its path and model."""

    def write(encoding, add_bos_token=False, **chosen):
        dictionary(40).save(str(data / "dict.txt"))
        lm, path = ExportedClass(LANGUAGE_MODEL, encoding, chosen), tmp_path / "lm.pt"
        return path, write_checkpoint(lm, str(path), str(data), add_bos_token=add_bos_token)

    return write


@pytest.fixture
def sources():
    """Sentences of 8, 3, 1 and 15 tokens of the source dictionary, without EOS."""
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(4, 40, (n,), generator=generator).tolist() for n in (8, 3, 1, 15)]


@pytest.fixture
def translate():
    """A function from a model and sources to its hypotheses: tokens and scores, best first."""

    def search(model, sources, beam=4, longest=8, shortest=0, bos=False):
        sources = [[0] * bos + source + [EOS] for source in sources]
        width = max(map(len, sources))
        tokens = torch.tensor([[PAD] * (width - len(s)) + s for s in sources])
        for layer in model.encoder.layers:
            # the fused path of fairseq 0.12.2 fails with torch 2.0
            layer.can_use_fastpath = False
        generator = SequenceGenerator(
            [model], dictionary(model.decoder.embed_tokens.num_embeddings),
            beam_size=beam, max_len_a=0, max_len_b=longest, min_len=shortest,
        )  # fmt: skip
        net_input = {"src_tokens": tokens, "src_lengths": torch.tensor(list(map(len, sources)))}
        found = generator.generate([model], {"net_input": net_input})
        return [[(h["tokens"].tolist(), float(h["score"])) for h in one] for one in found]

    return search


def teach(model, draw, rate):
    """Train a model for some seconds on sources and targets that ``draw`` makes for each step."""
    torch.manual_seed(1)
    for module in model.train().modules():
        getattr(module, "reset_parameters", int)()  # not the strong ones of the fixture
    model.encoder.embed_tokens.weight.data *= 0.1
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(150):
        source, target = draw(step)  # both end with EOS
        output = model(source, None, torch.cat([target[:, -1:], target[:, :-1]], 1))[0]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
    return model.eval().state_dict()


@pytest.fixture
def agree():
    """A function that compares hypotheses: equal tokens, and scores but for rounding."""

    def compare(found, expected, rounding=1e-5):
        assert [[tokens for tokens, _ in one] for one in found] == [
            [tokens for tokens, _ in one] for one in expected
        ]
        for one, other in zip(found, expected):
            assert [score for _, score in one] == pytest.approx(
                [score for _, score in other], abs=rounding
            )

    return compare


TYPES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TYPES += [
    start + letter
    for letter in string.ascii_letters + "öäéè我爱东京がかガ東北"
    for start in ("", "##")
]
TYPES += ["dog", "DOG", "?", "で", "す"]
TINY = dict(
    vocab_size=len(TYPES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=24, max_position_embeddings=34,
)  # fmt: skip
FSMT = dict(
    langs=["en", "de"], src_vocab_size=8, tgt_vocab_size=8, d_model=16, encoder_layers=1,
    decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
    decoder_attention_heads=2, max_position_embeddings=30,
)  # fmt: skip


@pytest.fixture
def save(tmp_path):
    """A function that saves a random model of transformers, strong enough that all matters."""
    transformers = pytest.importorskip("transformers")

    def write(name="Bert", **chosen):
        sizes, head = (
            (FSMT, "ForConditionalGeneration") if name == "FSMT" else (TINY, "ForMaskedLM")
        )
        config = getattr(transformers, f"{name}Config")(**{**sizes, **chosen})
        torch.manual_seed(1)
        model = getattr(transformers, f"{name}{head}")(config).eval()
        for key, parameter in model.named_parameters():
            if "embed_positions" not in key:
                parameter.data += 0.3 * torch.randn(parameter.shape)
        model.save_pretrained(tmp_path / "theirs")
        if name == "FSMT":
            symbols = ["<s>", "<pad>", "</s>", "<unk>", "a</w>", "a", "b", "c"]
            for side in ("src", "tgt"):
                size = getattr(config, f"{side}_vocab_size")
                numbers = json.dumps({symbol: n for n, symbol in enumerate(symbols[:size])})
                (tmp_path / "theirs" / f"vocab-{side}.json").write_text(numbers)
            (tmp_path / "theirs" / "merges.txt").write_text("a b 1\n")
            change(tmp_path / "theirs" / "tokenizer_config.json", langs=FSMT["langs"])
        else:
            types = [*TYPES]
            if name in ("Roberta", "XLMRoberta"):
                types = ["<s>", "<pad>", "</s>", "<unk>", *TYPES[5:], "<mask>"]
            (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(types) + "\n", "utf-8")
        return tmp_path / "theirs", model

    return write


def imported(folder):
    output = folder.parent / "ours" / "model.pt"
    notes = import_model(str(folder), str(output))
    return output, notes


def change(path, **values):
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**found, **values}))

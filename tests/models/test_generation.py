"""Beam search with every encoding: what it finds is what the model says of it."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_posenc.attention import cache
from fairseq_posenc.encodings import names

PAD, EOS = 1, 2


@pytest.fixture
def sample():
    """Left-padded sources of several lengths."""
    generator, lengths = torch.Generator().manual_seed(3), [9, 4, 7, 5, 8]
    tokens = torch.randint(4, 40, (5, 9), generator=generator)
    tokens[:, -1] = EOS
    tokens[torch.arange(9) < 9 - torch.tensor(lengths).unsqueeze(1)] = PAD
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(lengths)}}


def translations(models, dictionary, sample, **options):
    generator = SequenceGenerator(
        models, dictionary, beam_size=3, max_len_a=0, max_len_b=14, **options
    )
    return generator.generate(models, sample)


@pytest.mark.parametrize("encoding", names())
@pytest.mark.parametrize("pre_norm", [False, True])
@torch.no_grad()
def test_scores_are_those_of_the_full_pass(
    build_model, tiny_task, sample, encoding, pre_norm, monkeypatch
):
    monkeypatch.setattr(cache, "FIRST_CAPACITY", 2)
    model = build_model(
        encoding, encoder_normalize_before=pre_norm, decoder_normalize_before=pre_norm
    )
    # the end is likely everywhere, so that sentences leave the batch early and late
    bias = torch.zeros(len(tiny_task.target_dictionary))
    bias[EOS] = 1.7
    model.decoder.output_projection.bias = torch.nn.Parameter(bias)
    found = translations([model], tiny_task.target_dictionary, sample)
    assert len({len(hypothesis["tokens"]) for beam in found for hypothesis in beam}) > 1
    for source, beam in zip(sample["net_input"]["src_tokens"], found):
        for hypothesis in beam:
            tokens = hypothesis["tokens"]
            prefix = torch.cat([torch.tensor([EOS]), tokens[:-1]])
            output = model(source[source.ne(PAD)].unsqueeze(0), None, prefix.unsqueeze(0))
            scores = model.get_normalized_probs(output, log_probs=True)[0]
            expected = scores.gather(1, tokens.unsqueeze(1)).squeeze(1)
            assert (hypothesis["positional_scores"] - expected).abs().max() < 1e-5
            weights = hypothesis["attention"][source.ne(PAD)].t()
            assert (weights - output[1]["attn"][0][0]).abs().max() < 1e-5


@pytest.mark.parametrize("generation_only", [False, True])
@torch.no_grad()
def test_translations_are_those_of_stock_fairseq(build_model, tiny_task, sample, generation_only):
    stock, ours = build_model(None, 1), build_model("sinusoidal", 2)
    ours.load_state_dict(stock.state_dict())
    if generation_only:
        for model in (stock, ours):
            model.make_generation_fast_(need_attn=False)
    found, expected = (
        translations([model], tiny_task.target_dictionary, sample) for model in (ours, stock)
    )
    for beam, other in zip(found, expected):
        for hypothesis, stock_hypothesis in zip(beam, other):
            assert torch.equal(hypothesis["tokens"], stock_hypothesis["tokens"])
            assert abs(hypothesis["score"] - stock_hypothesis["score"]) < 1e-5


@torch.no_grad()
def test_an_ensemble_of_encodings_generates(build_model, tiny_task, sample):
    models = [build_model(name, seed) for seed, name in enumerate((None, "shaw", "tupe"))]
    prefix = torch.tensor([[7, 8], [9, PAD], [7, 7], [PAD, PAD], [5, 6]])
    dictionary = tiny_task.target_dictionary
    generator = SequenceGenerator(models, dictionary, beam_size=3, max_len_a=0, max_len_b=9)
    found = generator.generate(models, sample, prefix_tokens=prefix)
    assert [beam[0]["tokens"][0].item() for beam in found[:3]] == [7, 9, 7]
    assert all(hypothesis["score"].isfinite() for beam in found for hypothesis in beam)


@torch.no_grad()
def test_the_first_step_is_taken_once_for_all_hypotheses_of_a_sentence(build_model, sample):
    model, rows, seen = build_model("conditional"), torch.arange(5).repeat_interleave(3), []
    model.decoder.layers[0].fc1.register_forward_hook(
        lambda module, inputs, output: seen.append(output.size(1))
    )
    encoded = model.encoder(**sample["net_input"])
    beams, state = model.encoder.reorder_encoder_out(encoded, rows), {}
    start = torch.full((15, 1), EOS)
    found, extra = model.decoder(start, beams, incremental_state=state)
    expected, expected_extra = model.decoder(start, beams)
    assert seen == [5, 15]
    assert (found - expected).abs().max() < 1e-5
    assert (extra["attn"][0] - expected_extra["attn"][0]).abs().max() < 1e-5
    pairs = zip(extra["inner_states"], expected_extra["inner_states"])
    assert all((one - other).abs().max() < 1e-5 for one, other in pairs)
    different = torch.arange(4, 19).unsqueeze(1)
    found = model.decoder(different, beams, incremental_state={})[0]
    assert (found - model.decoder(different, beams)[0]).abs().max() < 1e-5
    assert seen == [5, 15, 15, 15]

"""Promises that every encoding keeps inside the translation model."""

import pytest
import torch

from fairseq_posenc.encodings import names

PAD, EOS = 1, 2
each_encoding = pytest.mark.parametrize("encoding", names())


def batch_of(sentences, left_pad):
    width = max(map(len, sentences))
    padded = [
        [PAD] * (width - len(s)) * left_pad + s + [PAD] * (width - len(s)) * (not left_pad)
        for s in sentences
    ]
    return torch.tensor(padded)


def sentences(seed, *lengths):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(4, 40, (length - 1,), generator=generator).tolist() + [EOS]
        for length in lengths
    ]


def log_probabilities(model, source, target):
    output = model(source, None, target)
    return model.get_normalized_probs(output, log_probs=True)


@pytest.fixture
def build(build_model):
    """A function that builds a tiny model whose position encoding has strong parameters."""

    def build(encoding, seed=1, **options):
        model = build_model(encoding, seed, **options)
        generator = torch.Generator().manual_seed(seed)
        for side in (model.encoder, model.decoder):
            for parameter in side.embed_positions.parameters():
                parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
        return model

    return build


@pytest.fixture
def batch():
    """Left-padded sources and right-padded targets of several lengths."""
    source = batch_of(sentences(3, 9, 4, 7), left_pad=True)
    target = batch_of(sentences(4, 8, 6, 3), left_pad=False)
    return source, target


@each_encoding
@pytest.mark.parametrize("left_source", [True, False])
@pytest.mark.parametrize("left_target", [True, False])
def test_padding_does_not_change_the_output(build, encoding, left_source, left_target):
    model = build(encoding)
    sources, targets = sentences(3, 9, 4, 7), sentences(4, 8, 6, 3)
    source, target = batch_of(sources, left_source), batch_of(targets, left_target)
    together, extra = model(source, None, target)
    for row, (one_source, one_target) in enumerate(zip(sources, targets)):
        alone, alone_extra = model(torch.tensor([one_source]), None, torch.tensor([one_target]))
        real_source, real_target = source[row].ne(PAD), target[row].ne(PAD)
        assert (together[row, real_target] - alone[0]).abs().max() < 1e-5
        weights = extra["attn"][0][row, real_target][:, real_source]
        assert (weights - alone_extra["attn"][0][0]).abs().max() < 1e-5


@each_encoding
def test_with_the_whole_target_in_sight_padding_is_not(build, encoding, batch):
    """Also where gradients are wanted, and padding on the right is usually ignored."""
    model, (source, target) = build(encoding), batch

    def outputs(rows, target):
        encoded = model.encoder(source[rows], None)
        return model.decoder.extract_features(target, encoded, full_context_alignment=True)[0]

    padded = outputs(slice(None), target)
    for row, tokens in enumerate(target):
        alone = tokens[tokens.ne(PAD)][None]
        found = outputs(slice(row, row + 1), alone)
        torch.testing.assert_close(padded[row, : alone.size(1)], found[0], rtol=0, atol=1e-5)


@each_encoding
@pytest.mark.parametrize("left_pad", [True, False])
def test_what_the_encoder_returns_is_in_the_order_of_its_input(build, encoding, left_pad):
    model, sources = build(encoding), sentences(3, 9, 4, 7)
    source = batch_of(sources, left_pad)
    embedded = model.encoder.embed_tokens(source)
    found = model.encoder(source, return_all_hiddens=True, token_embeddings=embedded)
    assert torch.equal(found["encoder_padding_mask"][0], source.eq(PAD))
    assert found["src_lengths"][0].flatten().tolist() == [9, 4, 7]
    assert len(found["encoder_states"]) == len(model.encoder.layers) + 1
    assert model.encoder(source)["encoder_states"] == []
    for row, one_source in enumerate(sources):
        real = source[row].ne(PAD)
        alone = model.encoder(torch.tensor([one_source]), return_all_hiddens=True)
        pairs = zip(
            [found["encoder_out"][0], *found["encoder_states"]],
            [alone["encoder_out"][0], *alone["encoder_states"]],
        )
        for together, one in pairs:
            assert (together[real, row] - one[:, 0]).abs().max() < 1e-5
        embedding = found["encoder_embedding"][0][row, real]
        assert torch.equal(embedding, alone["encoder_embedding"][0][0])


@each_encoding
@pytest.mark.parametrize("factor", [2, 8])
@torch.no_grad()
def test_sequences_longer_than_in_training_are_translated(build, encoding, factor):
    model = build(encoding, max_source_positions=8, max_target_positions=8)
    source = batch_of(sentences(6, 8 * factor, 5 * factor), left_pad=True)
    target = batch_of(sentences(7, 7 * factor, 8 * factor), left_pad=False)
    whole = log_probabilities(model, source, target)
    assert whole.isfinite().all()
    assert model.max_positions()[0] >= 8 * factor <= model.max_positions()[1]
    encoded, state = model.encoder(source), {}
    for length in range(1, 8 * factor + 1):
        newest = model.decoder(target[:, :length], encoded, incremental_state=state)
        found = model.get_normalized_probs(newest, log_probs=True)[1, 0]
        assert (found - whole[1, length - 1]).abs().max() < 1e-5


@each_encoding
def test_activation_checkpointing_changes_nothing(build, encoding, batch):
    gradients, flags = [], ("checkpoint_activations", "offload_activations")
    for chosen in (0, 1, 2):
        options = dict.fromkeys(flags[:chosen], True)
        model = build(encoding, attention_dropout=0.2, **options).train()
        torch.manual_seed(3)
        loss = log_probabilities(model, *batch).square().mean()
        loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert all(torch.allclose(gradients[0], found, atol=1e-7) for found in gradients[1:])


@each_encoding
@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.2), (torch.float16, 0.05)])
def test_half_precision_agrees_far_from_the_start(build, encoding, dtype, tolerance):
    model = build(encoding, max_source_positions=900, max_target_positions=900)
    source = batch_of(sentences(8, 800, 300), left_pad=True)
    target = batch_of(sentences(9, 30, 20), left_pad=False)
    exact = log_probabilities(model, source, target)
    rough = log_probabilities(model.to(dtype), source, target).float()
    # positions in half precision would repeat beyond 256 (bf16) or 2048 (fp16)
    assert (exact - rough)[target.ne(PAD)].abs().max() < tolerance


def test_learned_exchanges_weights_with_stock_fairseq(build_model, batch):
    learned = {"encoder_learned_pos": True, "decoder_learned_pos": True}
    stock, ours = build_model(None, 1, **learned), build_model("learned", 2)
    ours.load_state_dict(stock.state_dict())
    difference = log_probabilities(stock, *batch) - log_probabilities(ours, *batch)
    assert difference[batch[1].ne(PAD)].abs().max() < 1e-5


def test_cape_gives_source_and_target_the_same_shift(build_model):
    options = {"position_local_shift": 0.0, "position_global_scale": 1.5}
    model = build_model("cape", **options).train()
    seen = {}
    for side in ("encoder", "decoder"):
        encoding = getattr(model, side).embed_positions
        encoding.register_forward_hook(
            lambda module, inputs, terms, side=side: seen.update({side: terms})
        )
    tokens = torch.tensor(sentences(1, 6, 6))
    model(tokens, None, tokens)
    assert torch.equal(seen["encoder"].input, seen["decoder"].input)
    assert not torch.equal(seen["encoder"].input[0], seen["encoder"].input[1])


def test_what_the_sides_share_follows_the_beam(build_model):
    model = build_model("cape").train()
    encoded = model.encoder(torch.tensor(sentences(1, 5, 5, 5)))
    order = torch.tensor([2, 0, 0])
    reordered = model.encoder.reorder_encoder_out(encoded, order)
    for before, after in zip(encoded["position_shared"], reordered["position_shared"]):
        assert torch.equal(before[order], after)
    assert len(reordered["position_shared"]) == 2


def test_hypotheses_of_a_sentence_change_places_for_nothing(build_model):
    encoder = build_model("sinusoidal").encoder
    encoded = encoder(torch.tensor(sentences(1, 5, 5)))
    beams = encoder.reorder_encoder_out(encoded, torch.tensor([0, 0, 1, 1]))
    assert encoder.reorder_encoder_out(beams, torch.tensor([1, 0, 2, 2])) is beams
    other = encoder.reorder_encoder_out(beams, torch.tensor([1, 0, 2, 1]))
    assert torch.equal(other["encoder_out"][0], encoded["encoder_out"][0][:, [0, 0, 1, 0]])


@pytest.mark.parametrize("left", [True, False])
@each_encoding
def test_sources_without_their_end_are_what_the_encoder_sees(build, encoding, left):
    hiding, plain = (build(encoding, no_source_eos=hidden).eval() for hidden in (True, False))
    whole = sentences(3, 9, 4, 7)
    cut, target = [s[:-1] for s in whole], batch_of(sentences(4, 8, 6, 3), left_pad=False)
    found = log_probabilities(hiding, batch_of(whole, left), target)
    expected = log_probabilities(plain, batch_of(cut, left), target)
    assert torch.allclose(found, expected, atol=1e-5)
    assert "|source-eos:no|" in hiding.signature and "eos" not in plain.signature
    # a source of EOS alone stays, as there would be nothing to attend to
    assert log_probabilities(hiding, batch_of([[EOS]], left), target[:1]).isfinite().all()


def test_embeddings_start_as_fairseqs_or_as_opennmts(build_model):
    """Glorot's bound for V types and d channels is √(6 / (V + d)), and σ is that by √3."""
    expected = {"normal": lambda v, d: d**-0.5, "xavier": lambda v, d: (2 / (v + d)) ** 0.5}
    for kind, deviation in expected.items():
        model = build_model("shape", embedding_initialization=kind)
        for side in (model.encoder, model.decoder):
            weight = side.embed_tokens.weight.detach()
            real = weight[torch.arange(len(weight)) != PAD]
            assert not weight[PAD].any()
            assert float(real.std()) == pytest.approx(deviation(*weight.shape), rel=0.1)
    # with the dictionary and the width of SHAPE's authors, after scaling
    assert expected["xavier"](32768, 512) * 512**0.5 == pytest.approx(0.175, abs=0.001)


def test_embeddings_have_no_dropout_where_there_is_to_be_none(build_model, batch):
    options = {"dropout": 0.9, "activation_dropout": 0.0, "attention_dropout": 0.0}
    source, target = batch
    for spared in (True, False):
        model = build_model("shaw", no_embedding_dropout=spared, **options).train()
        inputs = [side.embed for side in (model.encoder, model.decoder)]
        zeros = [int((inputs[0](source, None, None)[0][source != PAD] == 0).sum()),
                 int((inputs[1](target, None)[target != PAD] == 0).sum())]  # fmt: skip
        assert [count == 0 for count in zeros] == [spared, spared]
        # that of the layers stays
        assert model.encoder.layers[0].dropout_module.p == 0.9


@each_encoding
def test_deterministic_mode_of_torch_changes_no_gradient(build, batch, encoding):
    def gradients():
        model = build(encoding).train()
        torch.manual_seed(1)
        log_probabilities(model, *batch).square().sum().backward()
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    expected = gradients()
    torch.use_deterministic_algorithms(True)  # memory that is not written to is NaN, too
    try:
        found = gradients()
    finally:
        torch.use_deterministic_algorithms(False)
    assert expected.keys() == found.keys()
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())

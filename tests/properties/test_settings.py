"""SHAPE's settings and CAPE's α, for any corpus."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.data import indexed_dataset
from hypothesis import given
from hypothesis import strategies as st

from fairseq_posenc.data.token_ratio import training_token_ratio
from fairseq_posenc.tools.prepare.parallel.settings import extrapolate, interpolate

lines = st.lists(st.sampled_from(["ab", "c@@", "d"]), min_size=1, max_size=6).map(" ".join)
corpora = st.lists(st.tuples(lines, lines), max_size=25)


@given(pairs=corpora, neighbours=st.integers(1, 7), keep_rest=st.booleans())
def test_joined_pairs_come_apart_into_those_they_were_made_of(pairs, neighbours, keep_rest):
    joined = list(interpolate(iter(pairs), neighbours, "<sep>", keep_rest))
    sizes = []
    apart = []
    for source, target in joined:
        sentences = [side.split(" <sep> ") for side in (source, target)]
        assert len(sentences[0]) == len(sentences[1])
        sizes.append(len(sentences[0]))
        apart += zip(*sentences)
    kept = len(pairs) if keep_rest else len(pairs) - len(pairs) % neighbours
    assert apart == pairs[:kept]
    assert all(size == neighbours for size in sizes[:-1])
    assert not sizes or 1 <= sizes[-1] <= neighbours


@given(pairs=corpora, longest=st.integers(1, 6))
def test_what_is_left_for_extrapolation_has_two_short_sides_and_all_such_pairs(pairs, longest):
    short = []
    for source, target in pairs:
        if len(source.split()) <= longest and len(target.split()) <= longest:
            short.append((source, target))
    assert list(extrapolate(iter(pairs), longest)) == short


def binarise(prefix, lengths):
    builder = indexed_dataset.make_builder(f"{prefix}.bin", impl="mmap", vocab_size=100)
    for length in lengths:
        builder.add_item(torch.tensor([5] * length + [2], dtype=torch.int32))
    builder.finalize(f"{prefix}.idx")


@given(
    shards=st.lists(
        st.lists(
            st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
            min_size=1,
            max_size=2,
        ),
        min_size=1,
        max_size=2,
    ),
    turned=st.booleans(),
)
def test_the_ratio_of_tokens_is_that_of_all_pairs_of_all_parts_and_shards(
    tmp_path_factory, shards, turned
):
    folders = []
    for parts in shards:
        folders.append(tmp_path_factory.mktemp("shard"))
        for number, pairs in enumerate(parts):
            name = f"train{number or ''}.{'de-en' if turned else 'en-de'}"
            for side, language in enumerate(("en", "de")):
                binarise(folders[-1] / f"{name}.{language}", [pair[side] for pair in pairs])
    data = ":".join(map(str, folders))
    cfg = SimpleNamespace(data=data, train_subset="train", source_lang="en", target_lang="de")
    everything = [pair for parts in shards for pairs in parts for pair in pairs]
    source, target = (sum(pair[side] for pair in everything) for side in (0, 1))
    assert training_token_ratio(SimpleNamespace(cfg=cfg)) == pytest.approx(target / source)

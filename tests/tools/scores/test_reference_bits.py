"""Bits per token of the references, from what fairseq-generate --score-reference prints."""

from functools import partial

import pytest

from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.scores.score import evaluate, render
from tests.tools.scores.conftest import output_of

REFERENCES = ["ein Haus steht dort", "der Hund läuft heute schnell davon", "zwei Kinder spielen ."]
SCORES = ["-1.5 -0.5", "-2 -0.25 -0.75", "-3"]
score = partial(evaluate, language="de", source_language="en", bins=[4], length_of="reference")


@pytest.fixture
def files(write):
    """A function that writes the output of a model, and the scores of the references."""

    def files(references=REFERENCES, scores=SCORES, hypotheses=None):
        lines = output_of((hypotheses or references)[: len(references)], references)
        lines += [f"P-{n}\t{numbers}" for n, numbers in enumerate(scores[: len(references)])]
        texts = {"hypothesis": write("h", ["ein Haus"] * 3), "reference": write("r", REFERENCES)}
        return {**texts, "reference_scores": write("references.out", reversed(lines))}

    return files


def test_bits_are_summed_over_tokens_by_range(files):
    result = score(**files())
    assert result.all.metrics["bits"] == 8 / 6 and result.signatures["bits"].startswith("-log2 p")
    assert [part.metrics["bits"] for part in result.by_length.bins] == [5 / 3, 1.0]
    low, high = result.all.interval["bits"]
    assert 1 <= low < 8 / 6 < high <= 3
    assert result.sentences.statistics["bits"] == [[2, 2], [3, 3], [3, 1]]
    assert "bits per token of the references" in render(result)


def test_unknown_words_are_marked_in_t_lines_alone(files):
    outputs = [f"{text} <unk>" for text in REFERENCES]
    marked = [text.replace("<unk>", "<<unk>>") for text in outputs]
    assert score(**files(references=marked, hypotheses=outputs)).all.metrics["bits"] == 8 / 6


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hypotheses": ["das Haus"] * 3}, "not from fairseq-generate --score-reference"),
        ({"references": REFERENCES[:2]}, "has scores of 2 references, but there are 3 sentences"),
        ({"references": [*REFERENCES[1:], REFERENCES[0]]}, "has other sentences"),
        ({"scores": ["-1 x", *SCORES[1:]]}, "P-0 has no scores, or one that is no number"),
        ({"scores": ["-1 -inf", *SCORES[1:]]}, "P-0 has no scores, or one that is no number"),
    ],
)
def test_scores_of_other_references_are_refused(files, changed, said):
    with pytest.raises(UsageError, match=said):
        score(**files(**changed))


@pytest.mark.parametrize(
    ("path", "encoding", "said"),
    [
        ("a/average.pt", "shaw", ""),
        ("b/average.pt", "shaw", "has scores by b/average.pt, "),
        ("a/average.pt", "alibi", "has scores by position:alibi, "),
    ],
)
def test_scores_by_another_model_than_that_of_the_output_are_told(write, path, encoding, said):
    def output(name, path, encoding, hypotheses):
        log = f"| INFO | log | {{'path': '{path}'}}", f"| INFO | log | position:{encoding}"
        scores = [f"P-{n}\t{numbers}" for n, numbers in enumerate(SCORES)]
        return write(name, [*log, *output_of(hypotheses, REFERENCES), *scores])

    generated = output("generate.out", "a/average.pt", "shaw", ["ein Haus"] * 3)
    scores = output("references.out", path, encoding, REFERENCES)
    run = partial(score, generated=generated, reference_scores=scores)
    if encoding == "alibi":
        with pytest.raises(UsageError, match=f"{said}.* is of position:shaw: give those of one"):
            run()
    else:
        remarks = [remark for remark in run().remarks if "has scores by" in remark]
        assert len(remarks) == bool(said) and all(said in remark for remark in remarks)

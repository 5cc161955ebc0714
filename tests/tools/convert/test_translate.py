"""The program of docs/export.md translates as fairseq does, with a trained model."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.tools.convert.ctranslate2.model import to_ctranslate2
from tests.tools.convert.conftest import EOS, teach

pytest.importorskip("ctranslate2")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "export.md"
# what stands for SentencePiece here: words are its pieces
PIECES = """
class SentencePieceProcessor:
    def __init__(self, model_file):
        self.encode = lambda text, out_type: text.split()
        self.decode = " ".join
"""


def backwards(step):
    """Words, and the same backwards."""
    words, end = torch.randint(4, 12, (24, 1 + step % 4)), torch.full((24, 1), EOS)
    return torch.cat([words, end], 1), torch.cat([words.flip(1), end], 1)


def test_the_page_translates_as_fairseq_does(checkpoint, translate, tmp_path):
    path, model = checkpoint(
        "cape", position_source_scale=1.1, share_all_embeddings=True,
        encoder_layers=1, decoder_layers=1, encoder_embed_dim=32,
        encoder_normalize_before=True, decoder_normalize_before=True,
    )  # fmt: skip
    state = load_checkpoint(path)
    state["model"] = teach(model, backwards, 0.01)
    torch.save(state, path)
    to_ctranslate2(str(path), str(tmp_path / "ct2"), str(tmp_path / "bin"))
    draw = random.Random(5)
    sources = [[draw.randrange(4, 12) for _ in range(draw.randint(1, 4))] for _ in range(12)]

    def spelt(sentence):
        return " ".join(f"w{number - 4}" for number in sentence)

    lines = [spelt(source) + "\n" for source in sources]
    (tmp_path / "test.en").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "sentencepiece.py").write_text(PIECES, encoding="utf-8")
    program, *_ = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    found = translate(model, sources, beam=5, longest=39)
    expected = [spelt(best[0][:-1]) for best, *_ in found]
    assert printed.splitlines() == expected and len(set(expected)) > 3

import math

import pytest

from recipes.lib.updates_per_epoch import updates_per_epoch
from tests.tiny import binarise

LINES = 37


@pytest.fixture
def text(tmp_path):
    """A folder with a training set of 37 lines of 3 words."""
    (tmp_path / "dict.txt").write_text("".join(f"w{index} 1\n" for index in range(9)))
    lines = ([*(4 + (line + word) % 9 for word in range(3)), 2] for line in range(LINES))
    binarise(tmp_path / "train", lines)
    return tmp_path


@pytest.mark.parametrize("batch", [1, 8, 37])
@pytest.mark.parametrize("freq", [1, 3])
def test_updates_are_batches_by_update_freq_rounded_up(text, batch, freq):
    arguments = [text, "--user-dir", "fairseq_posenc", "--task", "posenc_masked_lm"]
    arguments += ["--arch", "posenc_bert_tiny", "--criterion", "masked_lm"]
    arguments += ["--sample-break-mode", "eos", "--batch-size", batch, "--update-freq", freq]
    arguments += ["--required-batch-size-multiple", 1]
    expected = math.ceil(math.ceil(LINES / batch) / freq)
    assert updates_per_epoch([str(word) for word in arguments]) == expected

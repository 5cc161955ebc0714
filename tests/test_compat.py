"""Loading: what is harmless loads as it was, all else is refused."""

import numpy as np
import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import UsageError


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float64, np.float32, np.bool_])
def test_arrays_and_numbers_of_numpy_load_as_they_were(tmp_path, kind):
    array = np.arange(6).reshape(2, 3).astype(kind)
    torch.save({"array": array, "number": kind(1)}, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert loaded["array"].dtype == array.dtype and (loaded["array"] == array).all()
    assert loaded["number"] == kind(1) and loaded["number"].dtype == kind


def test_an_array_of_objects_brings_in_nothing_hostile(tmp_path, hostile):
    array = np.array([hostile], dtype=object)
    torch.save({"array": array}, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="refused: it holds code"):
        load_checkpoint(str(tmp_path / "a.pt"))
    assert not hostile.witness.exists()

"""A disk that is full, or a limit of the kernel, while a model is written for another program."""

import pytest

from fairseq_posenc.tools.commands.export import main


@pytest.mark.parametrize("kind", ["fairseq", "ctranslate2", "huggingface", "safetensors"])
def test_it_is_told_in_one_line_and_leaves_nothing(
    kind, checkpoint, data, outcome, tmp_path, monkeypatch
):
    path, _ = checkpoint("sinusoidal", share_decoder_input_output_embed=True)
    output = tmp_path / "out"
    words = ["export", "--path", path, "--to", kind, "--data", data, "--output", output]
    monkeypatch.setattr("sys.argv", [str(word) for word in words])
    for largest in (0, 700, 30_000):
        told = outcome(main, megabytes=2000, largest=largest)
        assert "cannot write" in told and told.endswith("File too large"), (largest, told)
        assert not output.exists() and not list(tmp_path.glob("out*"))

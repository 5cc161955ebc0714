"""A disk that is full, or a limit of the kernel, while a model is written for another program."""

import resource
import signal

import pytest

from fairseq_posenc.tools.commands.export import main


@pytest.mark.parametrize("kind", ["fairseq", "ctranslate2", "huggingface", "safetensors"])
def test_it_is_told_in_one_line_and_leaves_nothing(
    kind, checkpoint, data, outcome, tmp_path, monkeypatch
):
    path, _ = checkpoint("sinusoidal", share_decoder_input_output_embed=True)
    output = tmp_path / "out"
    words = ["export", "--path", path, "--to", kind, "--data", data, "--output", output]

    for largest in (0, 700, 30_000):

        def export(largest=largest):
            monkeypatch.setattr("sys.argv", [str(word) for word in words])
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
            main()

        told = outcome(export, megabytes=2000)
        assert "cannot write" in told and told.endswith("File too large"), (largest, told)
        assert not output.exists() and not list(tmp_path.glob("out*"))

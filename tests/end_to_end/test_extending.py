"""A model with learned positions for longer inputs than it had, by the real command lines."""


def test_an_extended_model_is_fine_tuned_and_generates_beyond_its_old_length(
    run, training, binarised, tmp_path
):
    learned = "--position-encoding learned --disable-validation --no-epoch-checkpoints".split()
    learned += ["--skip-invalid-size-inputs-valid-test"]  # fairseq 0.12.2 loads that set, too
    old, new, longer = tmp_path / "old", tmp_path / "new", tmp_path / "longer.pt"
    first = ["--max-source-positions", "9", "--max-update", "2", "--save-dir", old]
    run(*training(*learned, *first))
    path = old / "checkpoint_last.pt"
    generate = ["fairseq-generate", binarised, "--user-dir", "fairseq_posenc", "--cpu", "--task"]
    generate += "posenc_translation --max-len-b 5 --required-batch-size-multiple 1 --path".split()
    printed = run("posenc", "extend", "--path", path, "--max-source-positions", "40", "--how",
                  "interpolate", "--output", longer)  # fmt: skip
    assert printed.splitlines() == [
        f"{longer}: written",
        "encoder: 9 positions became 40 (interpolate)",
    ]
    assert run(*generate, longer).count("\nH-") == 20
    more = ["--max-source-positions", "40", "--max-update", "1", "--save-dir", new]
    printed = run(*training(*learned, *more, "--finetune-from-model", longer))
    assert f"Loaded checkpoint {longer}" in printed and '"num_updates": "1"' in printed
    assert run(*generate, new / "checkpoint_last.pt").count("\nH-") == 20

"""What lines of a training's log tell: that it diverges, and what a person wants to watch."""

import pytest

from recipes.lib.log_lines import Progress, Watch


def lines(*losses):
    """Lines of a log, of every 100 updates."""
    form = "| INFO | train_inner | epoch 001: 1 / 9 loss={}, ppl=9, wps=1.0, num_updates={}, lr=1"
    return [form.format(loss, 100 * number) for number, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    "warmup, losses, told",
    [
        (200, (9, 7, 8, 8, 9), {3: "is 8.00 at update 400, after 200 of warm-up, and was 7.00"}),
        (200, (9, 7, "nan", "nan"), {3: "is nan at update 400"}),
        (250, (9, 7, 8, 8, 6, 9), {}),  # the first behind 500 is low again
        (200, (9, 7, 7.1, 7.1), {}),  # it stands still
        (99, (7, 9, 9), {}),
        (500, (9, 7, 8, 9), {}),  # stopped before
    ],
)
def test_a_loss_higher_than_within_warm_up_is_told_once(warmup, losses, told):
    watch = Watch(warmup)
    found = {number: watch.see(line) for number, line in enumerate(lines(*losses))}
    assert watch.see("| INFO | valid | loss 9") == ""
    assert {number for number, text in found.items() if text} == set(told)
    assert all(text in found[number] for number, text in told.items())


def test_warnings_of_this_plugin_are_shown():
    progress, begin = Progress("1 of 1", "9", "", "loss"), "2026-11-30 04:33:42 | WARNING | "
    warning = "fine-tuning with other positions: old.pt was trained with position:shaw|version:1"
    line = f"{begin}fairseq_posenc.guards.initial_checkpoint | {warning}\n"
    assert progress.see(line) == f"warning: {warning}"
    assert progress.see(f"{begin}fairseq.data.data_utils | 3 samples have invalid sizes\n") == ""

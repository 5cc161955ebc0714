"""Predictions of several workers, each a process of its own."""

import multiprocessing

import torch

from fairseq_posenc.metrics.gathering import Gathered, from_all_workers

WORKERS = 2
# more than fairseq's own function can send
LONG = "x" * 50_000


def work(rank, store, results):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=WORKERS
    )
    results.put((rank, from_all_workers({rank: LONG})))


def test_every_worker_gets_the_values_of_all(tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    arguments = (tmp_path / "store", results)
    processes = [context.Process(target=work, args=(rank, *arguments)) for rank in range(WORKERS)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    expected = [{rank: LONG} for rank in range(WORKERS)]
    assert found == {rank: expected for rank in range(WORKERS)}


def test_without_other_workers_there_is_one_value():
    assert from_all_workers("mine") == ["mine"]


def test_an_example_counts_once_however_often_it_was_predicted():
    meter = Gathered()
    meter.update({1: "a", 2: "b"})
    meter.update({2: "b", 3: "c"})
    assert meter.values == {1: "a", 2: "b", 3: "c"}
    assert meter.fn({}) == 3

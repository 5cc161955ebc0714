"""Pickles that would call, change or overwrite something: refused before they do."""

import argparse
import io
import os
import pickle
import random
import struct
import sys
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from omegaconf import OmegaConf

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import DamagedCheckpoint, UsageError

PROTOCOL = b"\x80\x02"
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def dumped(value):
    """The opcodes of a plain value."""
    return pickle.dumps(value, protocol=2)[2:-1]


# which storage another is a view of: legacy files alone say so
VIEW = b"<view>"


def storage(count, key="0", kind=None, module="torch", view=VIEW):
    kind = kind or named(module, "FloatStorage")
    parts = dumped("storage") + kind + dumped(key) + dumped("cpu") + dumped(count)
    return b"(" + parts + view + b"tQ"


def tensor(weights, offset=0, size=(2,), stride=(1,)):
    parts = (
        dumped(offset)
        + dumped(size)
        + dumped(stride)
        + b"\x89"
        + named("collections", "OrderedDict")
    )
    return named("torch._utils", "_rebuild_tensor_v2") + b"(" + weights + parts + b")RtR"


def dtype(code, state):
    return named("numpy", "dtype") + dumped((code, False, True)) + b"R" + dumped(state) + b"b"


def array(kind, data, shape=(1,)):
    made = named("numpy.core.multiarray", "_reconstruct") + b"(" + named("numpy", "ndarray")
    made += dumped((0,)) + named("_codecs", "encode") + dumped(("b", "latin1")) + b"RtR"
    return made + b"(" + dumped(1) + dumped(shape) + kind + b"\x89" + dumped(data) + b"tb"


NAMESPACE = named("argparse", "Namespace")
SYSTEM = dumped("touch witness")
PLAIN = (3, "<", None, None, None, -1, -1, 0)
WHOLE = (3, "|", None, None, None, -1, -1, 63)
BIG_ENDIAN = (3, ">", None, None, None, -1, -1, 0)
FIELDS = (3, "|", None, ("a",), {"a": ("O", 0)}, 8, 1, 63)
HOSTILE = {
    "a call": named("os", "system") + b"(" + SYSTEM + b"tR",
    "a call of a builtin": named("builtins", "eval") + b"(" + dumped("1") + b"tR",
    "a call inside of the opcode for instances": b"(" + SYSTEM + b"ios\nsystem\n",
    "a call by the opcode for objects": b"(" + named("os", "system") + SYSTEM + b"o",
    "a class of its own arguments": named("pathlib", "Path") + b")\x81",
    "a class with named arguments": NAMESPACE + b")}\x92",
    "an extension": b"\x82\x01",
    "a name of an attribute": dumped("argparse") + dumped("Namespace.__init__") + b"\x93",
    "a loader inside": named("torch.storage", "_load_from_bytes") + b"(" + dumped("x") + b"tR",
    "another rebuilder": named("torch._utils", "_rebuild_qtensor") + b")R",
    "another rebuilder within": named("torch._tensor", "_rebuild_from_type_v2") + b"(" + NAMESPACE
    + named("torch", "Tensor") + b")}tR",
    "another tensor within": named("torch._tensor", "_rebuild_from_type_v2") + b"("
    + named("torch._utils", "_rebuild_tensor_v2") + NAMESPACE + b")}tR",
    "slots of a namespace": NAMESPACE + b")\x81(N" + dumped({"__class__": 1}) + b"tb",
    "a class as a value": NAMESPACE,
    "a storage as a value": storage(2),
    "a call of a value": dumped({}) + b")R",
    "a changed class": NAMESPACE + b"(N" + dumped({"__getattr__": 1}) + b"tb",
    "a state of a list": b"]" + dumped({"a": 1}) + b"b",
    "a state of a tensor": tensor(storage(2)) + dumped({"a": 1}) + b"b",
    "items of a tensor": tensor(storage(2)) + dumped(0) + dumped(5.0) + b"s",
    "items of a list": b"]" + dumped(0) + dumped(5.0) + b"s",
    "a list's end of a tuple": b")" + dumped(0) + b"a",
    "an array without numbers": named("numpy", "ndarray") + dumped(((2**20,),)) + b"R",
    "an array of another class": named("numpy.core.multiarray", "_reconstruct") + b"(" + NAMESPACE
    + dumped((0,)) + dumped(b"b") + b"tR",
    "an array of a stand-in": named("fairseq_posenc.checkpoints.reader", "_Array") + b")\x81",
    "options from a call": NAMESPACE + b")R" + dumped({"a": 1}) + b"b" + dumped({1: 1}) + b"b",
    "hooks": named("torch._utils", "_rebuild_tensor_v2") + b"(" + storage(2) + dumped(0)
    + dumped((2,)) + dumped((1,)) + b"\x89" + dumped({0: 1}) + b"tR",
    "objects as numbers": array(dtype("O8", WHOLE), b"A" * 8),
    "objects without flags": array(dtype("O8", PLAIN), b"A" * 8),
    "letters as numbers": array(dtype("U2", PLAIN), b"A" * 8),
    "fields of objects": array(dtype("V8", FIELDS), b"A" * 8),
    "more numbers than there are": array(dtype("f8", PLAIN), b"A" * 8, shape=(1000,)),
    "a number of a few bytes": named("numpy.core.multiarray", "scalar") + b"(" + dtype("f8", PLAIN)
    + named("_codecs", "encode") + dumped(("b", "latin1")) + b"RtR",
    "another encoding": named("_codecs", "encode") + dumped(("b", "zlib")) + b"R",
    "more weights than there are": tensor(storage(1000), size=(1000,)),
    "weights without end": tensor(storage(2**60)),
    "fewer weights than none": tensor(storage(-1)),
    "weights of another file": tensor(storage(2, key="../../x")),
    "weights of a class": tensor(storage(2, kind=NAMESPACE)),
    "a tensor behind its weights": tensor(storage(2), offset=1),
    "a tensor before its weights": tensor(storage(2), offset=-1),
    "a step behind its weights": tensor(storage(2), stride=(2**40,)),
    "a step back": tensor(storage(2), offset=1, stride=(-1,)),
    "fewer steps than sizes": tensor(storage(2), size=(1, 2)),
    "a tensor of a number": tensor(dumped(2)),
    "a reference to a module": b"(" + dumped("module") + b"NNNtQ",
    "too deep": b"]" * 2000 + b"a" * 1999,
    "a set of lists": named("builtins", "set") + dumped(([[]],)) + b"R",
    "a dictionary of lists": b"}]Ns",
    "a long name, with commands to a terminal": named("a\x1b[2J" * 1000, "b"),
    "nothing at all": b"0",
    "half a value": b"X\xff\xff\xff\x7fabc",
}  # fmt: skip
# odd, and read: what a name stands for is none the worse for it
ODD = {
    "a call with a list": NAMESPACE + b"]R",
    "dunders of a namespace": NAMESPACE + b")\x81" + dumped({"__class__": 1}) + b"b",
    "weights of two sizes": b"(" + tensor(storage(2)) + tensor(storage(1), size=(1,)) + b"t",
    "a view of weights": tensor(storage(2, view=dumped(("0", 1, 1)))),
}  # fmt: skip


def write_zip(path, body, more=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", PROTOCOL + body.replace(VIEW, b"") + b".")
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data/0", struct.pack("<2f", 1, 2))
        for name in more:
            archive.writestr(name, b"x")


def write_legacy(path, body):
    header = b"".join(pickle.dumps(value, 2) for value in (MAGIC, VERSION, {}))
    weights = pickle.dumps(["0"], 2) + struct.pack("<q2f", 2, 1, 2)
    path.write_bytes(header + PROTOCOL + body.replace(VIEW, b"N") + b"." + weights)


@pytest.mark.parametrize("write", [write_zip, write_legacy])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_pickles_are_refused(tmp_path, monkeypatch, write, case):
    monkeypatch.chdir(tmp_path)
    before = set(vars(argparse.Namespace))
    for body in (HOSTILE[case], b"}" + dumped("a") + HOSTILE[case] + b"s"):
        write(tmp_path / "a.pt", body)
        with pytest.raises(UsageError) as caught:
            load_checkpoint(str(tmp_path / "a.pt"))
        assert len(str(caught.value)) < 1000
    assert not (tmp_path / "witness").exists()
    assert set(vars(argparse.Namespace)) == before


@pytest.mark.parametrize("write", [write_zip, write_legacy])
@pytest.mark.parametrize("case", ODD)
def test_odd_pickles_run_nothing(tmp_path, monkeypatch, write, case):
    monkeypatch.chdir(tmp_path)
    before = set(vars(argparse.Namespace))
    write(tmp_path / "a.pt", ODD[case])
    with suppress(UsageError):
        load_checkpoint(str(tmp_path / "a.pt"))
    assert os.listdir() == ["a.pt"] and set(vars(argparse.Namespace)) == before


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Path("a"), "PosixPath"),
        (OmegaConf.create({"a": 1}), "omegaconf"),
        (Dictionary(), "fairseq.data.dictionary.Dictionary"),
        (torch.nn.Linear(1, 1), "Linear"),
        (bytearray(b"a"), "bytearray"),
        ({1: frozenset([2])}, "frozenset"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_is_not_read_is_named_and_the_line_says_what_to_do(tmp_path, value, name):
    torch.save({"model": {"w": torch.ones(1)}, "more": value}, tmp_path / "a.pt")
    with pytest.raises(UsageError, match=f"refused: it holds '[\\w.]*{name}.* save it again$"):
        load_checkpoint(str(tmp_path / "a.pt"))


@pytest.mark.parametrize("write", [write_zip, write_legacy])
def test_the_same_ways_of_writing_load_what_is_harmless(tmp_path, write):
    write(tmp_path / "a.pt", tensor(storage(2)))
    assert load_checkpoint(str(tmp_path / "a.pt")).tolist() == [1, 2]
    number = array(dtype("f8", PLAIN), struct.pack("<d", 3))
    write(tmp_path / "a.pt", b"(" + tensor(storage(2)) + number + b"t")
    assert load_checkpoint(str(tmp_path / "a.pt"))[1].tolist() == [3]


@pytest.mark.parametrize("is_zip", [True, False])
def test_tensors_load_as_they_were(tmp_path, is_zip):
    weights = torch.arange(6.0)
    tensors = [weights, weights[2:], weights.view(2, 3).t(), torch.empty(0, 3), torch.tensor(1.5)]
    tensors += [weights.clone().requires_grad_()]
    tensors += [torch.nn.Parameter(weights.clone(), learns) for learns in (True, False)]
    kinds = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
    tensors += [torch.ones(3).to(getattr(torch, kind)) for kind in kinds]
    torch.save(tensors, tmp_path / "a.pt", _use_new_zipfile_serialization=is_zip)
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert all(map(torch.equal, loaded, tensors))
    for one, other in zip(loaded, tensors):
        assert (one.dtype, one.stride(), one.requires_grad, type(one)) == (
            other.dtype, other.stride(), other.requires_grad, type(other)
        )  # fmt: skip


def test_weights_with_attributes_load(tmp_path):
    weights = torch.ones(2)
    weights._has_been_cloned = True  # by fairscale, with --ddp-backend fully_sharded
    torch.save(weights, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert torch.equal(loaded, weights)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.float32, np.bool_])
def test_arrays_and_numbers_of_numpy_load_as_they_were(tmp_path, kind):
    array = np.arange(6).reshape(2, 3).astype(kind)
    torch.save({"array": array, "number": kind(1)}, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert loaded["array"].dtype == array.dtype and (loaded["array"] == array).all()
    assert loaded["number"] == kind(1) and loaded["number"].dtype == kind


def test_names_that_a_program_lets_torch_load_change_nothing(tmp_path, hostile):
    """Many programs add Namespace, without which torch ≥ 2.6 loads nothing of fairseq's."""
    names = [argparse.Namespace, open]
    state = {"args": argparse.Namespace(x=1)}
    with torch.serialization.safe_globals(names):
        for _ in range(5):  # torch keeps names in a set, whose order is random
            torch.save(state, tmp_path / "a.pt")
            assert load_checkpoint(str(tmp_path / "a.pt")) == state
        assert set(torch.serialization.get_safe_globals()) >= set(names)
        torch.save(hostile, tmp_path / "a.pt")
        with pytest.raises(UsageError, match="refused"):
            load_checkpoint(str(tmp_path / "a.pt"))
    assert not hostile.witness.exists()


def test_what_is_loaded_is_of_no_type_of_ours(tmp_path):
    shared = np.arange(3.0)
    options = argparse.Namespace(x=[shared], y=argparse.Namespace())
    state = {"m": [(10, "bleu", {"sum": shared})], "o": options, "t": (options, {(1, "a")})}
    state["o"].whole = state["m"]
    weights = torch.nn.Linear(2, 2).state_dict()
    torch.save({**state, "w": weights, "p": torch.nn.Parameter(torch.ones(1))}, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert b"posenc" not in pickle.dumps(loaded)
    assert type(loaded["m"][0][2]["sum"]) is np.ndarray
    assert loaded["o"].x[0] is loaded["m"][0][2]["sum"] and loaded["o"].whole is loaded["m"]
    assert loaded["t"][0] is loaded["o"] and loaded["w"]._metadata == weights._metadata


@pytest.mark.skipif(sys.byteorder == "big", reason="it is this machine's order")
def test_numbers_of_another_order_of_bytes_are_never_taken_for_ours(tmp_path):
    numbers = array(dtype("f8", BIG_ENDIAN), struct.pack(">d", 3))
    for body, more in ((numbers, ()), (tensor(storage(2)), ["archive/byteorder"])):
        write_zip(tmp_path / "a.pt", body, more)
        with pytest.raises(DamagedCheckpoint):
            load_checkpoint(str(tmp_path / "a.pt"))


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    write_zip(path, b"}", ["archive/constants.pkl"])
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(str(path))
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(str(path))


def test_changed_pickles_with_right_checksums_end_well_or_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = {
        "a": argparse.Namespace(x=[1, "2"]), "n": np.arange(3.0), "m": np.float32(1), "s": {1, 2},
        "d": torch.nn.Linear(2, 2).state_dict(), "t": torch.ones(2, 2).t(),
    }  # fmt: skip
    torch.save(state, "whole.pt")
    with zipfile.ZipFile("whole.pt") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in parts if name.endswith("data.pkl"))
    for case in range(500):
        chance, body = random.Random(case), bytearray(parts[pickled])
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(body))
            choice = chance.random()
            if choice < 0.6:
                body[at] = chance.randrange(256)
            elif choice < 0.8:
                body[at:at] = chance.choice(list(HOSTILE.values()))
            else:
                del body[at : at + chance.randrange(1, 9)]
        with zipfile.ZipFile("changed.pt", "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, bytes(body) if name == pickled else content)
        with suppress(UsageError):
            load_checkpoint("changed.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changed.pt", "whole.pt"]


def test_only_content_is_proof_of_damage(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.ones(1000)}, path)
    whole = path.read_bytes()
    for content in (whole[:-100], whole[:2000] + b"x" + whole[2001:], b"", b"\0" * 100):
        path.write_bytes(content)
        with pytest.raises(DamagedCheckpoint):
            load_checkpoint(str(path))
    write_legacy(path, tensor(storage(2**60)))  # told before memory is asked for
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(str(path))
    write_legacy(path, tensor(storage(2)))
    path.write_bytes(path.read_bytes().replace(struct.pack("<q", 2), struct.pack("<q", 3)))
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(str(path))
    path.write_bytes(whole)

    for failure in (OSError(5, "Input/output error"), MemoryError(), OSError(24, "Too many files")):
        monkeypatch.setattr(zipfile, "ZipFile", Mock(side_effect=failure))
        with pytest.raises(UsageError, match="cannot read") as caught:
            load_checkpoint(str(path))
        assert not isinstance(caught.value, DamagedCheckpoint)


def test_a_pipe_is_no_checkpoint(tmp_path):
    """It would be waited for until somebody writes."""
    os.mkfifo(tmp_path / "model.pt")
    with pytest.raises(UsageError, match="model.pt is a pipe or a device; give the file"):
        load_checkpoint(str(tmp_path / "model.pt"))

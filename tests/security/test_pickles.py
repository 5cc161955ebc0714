"""Pickles that would call, change or overwrite something: refused before they do."""

import argparse
import io
import pickle
import random
import struct
import sys
import tarfile
import zipfile
from contextlib import suppress
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from fairseq_posenc.checkpoints import load_checkpoint
from fairseq_posenc.errors import DamagedCheckpoint, UsageError

PROTOCOL = b"\x80\x02"
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def dumped(value):
    """The opcodes of a plain value."""
    return pickle.dumps(value, protocol=2)[2:-1]


def storage(count, key="0", kind=None, module="torch", view=b""):
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
    "a class as a value": NAMESPACE,
    "a storage as a value": storage(2),
    "a call of a value": dumped({}) + b")R",
    "a call with a list": NAMESPACE + b"]R",
    "a changed class": NAMESPACE + b"(N" + dumped({"__getattr__": 1}) + b"tb",
    "slots of a namespace": NAMESPACE + b")\x81(N" + dumped({"a": 1}) + b"tb",
    "dunders of a namespace": NAMESPACE + b")\x81" + dumped({"__class__": 1}) + b"b",
    "a state of a list": b"]" + dumped({"a": 1}) + b"b",
    "a state of a tensor": tensor(storage(2)) + dumped({"a": 1}) + b"b",
    "items of a tensor": tensor(storage(2)) + dumped(0) + dumped(5.0) + b"s",
    "items of a list": b"]" + dumped(0) + dumped(5.0) + b"s",
    "a list's end of a tuple": b")" + dumped(0) + b"a",
    "objects as numbers": array(dtype("O8", WHOLE), b"A" * 8),
    "objects without flags": array(dtype("O8", PLAIN), b"A" * 8),
    "letters as numbers": array(dtype("U2", PLAIN), b"A" * 8),
    "fields of objects": array(dtype("V8", FIELDS), b"A" * 8),
    "more numbers than there are": array(dtype("f8", PLAIN), b"A" * 8, shape=(1000,)),
    "a number of a few bytes": named("numpy.core.multiarray", "scalar") + b"(" + dtype("f8", PLAIN)
    + named("_codecs", "encode") + dumped(("b", "latin1")) + b"RtR",
    "another encoding": named("_codecs", "encode") + dumped(("b", "zlib")) + b"R",
    "more weights than there are": tensor(storage(1000), size=(1000,)),
    "weights of two sizes": b"(" + tensor(storage(2)) + tensor(storage(1), size=(1,)) + b"t",
    "a view of weights": tensor(storage(2, view=dumped(("0", 1, 1)))),
    "weights without end": tensor(storage(2**60)),
    "fewer weights than none": tensor(storage(-1)),
    "weights of another file": tensor(storage(2, key="../../x")),
    "weights of a class": tensor(storage(2, kind=NAMESPACE)),
    "a tensor behind its weights": tensor(storage(2), offset=1),
    "a tensor before its weights": tensor(storage(2), offset=-1),
    "a step behind its weights": tensor(storage(2), stride=(2**40,)),
    "a step back": tensor(storage(2), offset=1, stride=(-1,)),
    "one number as many": tensor(storage(2), size=(2**30, 2**30), stride=(0, 0)),
    "fewer steps than sizes": tensor(storage(2), size=(1, 2)),
    "a tensor of a number": tensor(dumped(2)),
    "a reference to a module": b"(" + dumped("module") + b"NNNtQ",
    "too deep": b"]" * 2000 + b"a" * 1999,
    "itself": b"]q\x00h\x00a",
    "no end": b"]q\x00" + b"".join(
        b"(h" + bytes([n]) + b"h" + bytes([n]) + b"lq" + bytes([n + 1]) for n in range(60)
    ).replace(b"l", b"t"),
    "a set of lists": named("builtins", "set") + dumped(([[]],)) + b"R",
    "a dictionary of lists": b"}]Ns",
    "keys of equal hashes": dumped({n * (2**61 - 1): 0 for n in range(9)}),
    "other keys of equal hashes": dumped({(-1, -2): 0, (-2, -1): 0}),
    "negative keys of equal hashes": dumped({-n * (2**61 - 1): 0 for n in range(9)}),
    "one key of equal hashes": b"}" + dumped(2**61 - 1) + b"Ns",
    "ordered keys of equal hashes": named("collections", "OrderedDict")
    + dumped(([[2**61 - 1, 0]],)) + b"R",
    "a set of equal hashes": named("builtins", "set") + dumped(([2**61 - 1, 2**62 - 2],)) + b"R",
    "a long name, with commands to a terminal": named("a\x1b[2J" * 1000, "b"),
    "nothing at all": b"0",
    "half a value": b"X\xff\xff\xff\x7fabc",
}  # fmt: skip


MEGABYTE = 1_000_000
MANY = [[n, 0] for n in range(50_000)]
KEYS = {f"k{n}": None for n in range(50_000)}


def again(count, maker, arguments):
    """A list of what one maker makes of the same arguments again and again."""
    first = maker + b"q\x00" + arguments + b"q\x01" + b"R"
    return b"](" + first + (b"h\x00h\x01R" * count) + b"e"


def unmemoised(value):
    """The opcodes of a plain value that take no numbers."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=2)
    pickler.fast = True
    pickler.dump(value)
    return stream.getvalue()[2:-1]


# a megabyte or less, and what becomes of it
SWELLING = {
    "sets": b"](" + b"\x8f" * MEGABYTE + b"e",
    "dictionaries": b"](" + b"}" * MEGABYTE + b"e",
    "marks": b"(" * MEGABYTE + b"t",
    "notes": b"]" + b"\x94" * MEGABYTE,
    "the same pairs": again(1000, named("collections", "OrderedDict"), unmemoised((MANY,))),
    "the same sizes": again(1000, named("torch", "Size"), unmemoised(((1,) * 200_000,))),
    "the same text": again(9000, named("_codecs", "encode"), unmemoised(("a" * 500_000, "latin1"))),
    "the same attributes": b"](" + unmemoised(KEYS) + b"q\x01" + NAMESPACE + b"q\x02"
    + b"h\x02)Rh\x01b" * 9000 + b"e",
    "chosen keys": b"}(" + b"".join(
        b"\x8a\x08" + struct.pack("<q", n << 40) + b"N" for n in range(90_000)
    ) + b"u",
    "fractions as keys": b"}(" + b"".join(
        b"G" + struct.pack(">d", n * 2.0**61) + b"N" for n in range(1, 90_000)
    ) + b"u",
    "a number of a million digits": b"\x8b" + struct.pack("<i", 415_000) + b"\x7f" * 415_000,
    "a wide tensor of nothing": tensor(storage(2), size=(1 << 40, 0), stride=(0, 1)),
    "notes far apart": b"](" + b"".join(
        b"Nr" + struct.pack("<I", n << 14) for n in range(1, 100_000)
    ) + b"e",
}  # fmt: skip


@pytest.mark.parametrize("case", SWELLING)
def test_what_swells_while_it_is_read_is_refused(tmp_path, outcome, case):
    write_zip(tmp_path / "a.pt", SWELLING[case])
    assert (tmp_path / "a.pt").stat().st_size < 1_500_000
    told = outcome(lambda: load_checkpoint(str(tmp_path / "a.pt")), 100, 10)
    assert "refused" in told


def write_zip(path, body, more=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", PROTOCOL + body + b".")
        archive.writestr("archive/data/0", struct.pack("<2f", 1, 2))
        for name in more:
            archive.writestr(name, b"x")


def write_legacy(path, body):
    header = b"".join(pickle.dumps(value, 2) for value in (MAGIC, VERSION, {}))
    weights = pickle.dumps(["0"], 2) + struct.pack("<q2f", 2, 1, 2)
    path.write_bytes(header + PROTOCOL + body + b"." + weights)


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


def test_attributes_of_tensors_are_left_out(tmp_path):
    weights = torch.ones(2)
    weights._has_been_cloned = True  # by fairscale, with --ddp-backend fully_sharded
    torch.save(weights, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert torch.equal(loaded, weights) and not vars(loaded)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.float32, np.bool_])
def test_arrays_and_numbers_of_numpy_load_as_they_were(tmp_path, kind):
    array = np.arange(6).reshape(2, 3).astype(kind)
    torch.save({"array": array, "number": kind(1)}, tmp_path / "a.pt")
    loaded = load_checkpoint(str(tmp_path / "a.pt"))
    assert loaded["array"].dtype == array.dtype and (loaded["array"] == array).all()
    assert loaded["number"] == kind(1) and loaded["number"].dtype == kind


@pytest.mark.skipif(sys.byteorder == "big", reason="it is this machine's order")
def test_numbers_of_another_order_of_bytes_are_never_taken_for_ours(tmp_path):
    numbers = array(dtype("f8", BIG_ENDIAN), struct.pack(">d", 3))
    for body, more in ((numbers, ()), (tensor(storage(2)), ["archive/byteorder"])):
        write_zip(tmp_path / "a.pt", body, more)
        with pytest.raises(DamagedCheckpoint):
            load_checkpoint(str(tmp_path / "a.pt"))


def test_other_archives_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    for options in (
        {"more": ["archive/constants.pkl"]},
        {"more": ["other/data.pkl"]},
        {"compression": zipfile.ZIP_DEFLATED},
    ):
        write_zip(path, b"}", **options)
        with pytest.raises(UsageError, match="refused"):
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
    for case in range(2000):
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


def test_shared_values_are_as_deep_as_they_look(tmp_path):
    values = [[]]
    for _ in range(2000):
        values.append([values[-1]])
    torch.save(values[::50], tmp_path / "a.pt")
    with pytest.raises(UsageError, match="too deeply"):
        load_checkpoint(str(tmp_path / "a.pt"))

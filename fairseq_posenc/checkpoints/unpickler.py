"""An unpickler that runs nothing: it makes tensors, plain values and containers, and no more.

A pickle may call any function and set any attribute. torch's own safe unpickler depends on torch's
version, what is added to its allow list holds for the whole process, and it takes sizes on trust.
This one is the same for every torch: each known type is made here, from checked arguments, and
nothing of pickle's is used but the handlers of plain values and containers, in Python.
"""

import argparse
import collections
import math
import pickle
import sys
from typing import Any, BinaryIO, Callable, Dict, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

_DTYPES = {
    "DoubleStorage": torch.float64, "FloatStorage": torch.float32, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool, "UntypedStorage": torch.uint8,
}  # fmt: skip
_KEYS = (str, bytes, int, float, bool, type(None))
_EQUAL_HASHES = sys.hash_info.modulus
# The hash of a number can be chosen, so that a dictionary looks at all others before it. Below this
# there are not enough of such; old optimizers' states have addresses, thousands, as keys.
_SMALL_KEY, _MOST_LARGE_KEYS = 1 << 16, 5_000
_MOST_DIMENSIONS = 64
_WIDEST_EMPTY = 1 << 16  # side of a tensor that holds nothing
# what a call or a set takes, beside a list or tuple, and bytes of text in one
_LARGE, _TEXT = 4, 16
_LONGEST_CODE = 8  # of a kind of number of NumPy's, as in <c16
# of an array or number of NumPy's: what __reduce__ gives beside the byte order
_DTYPE_STATE = (None, None, None, -1, -1, 0)


class Refused(Exception):
    """A file holds what no checkpoint of weights and options needs."""


class Maker(NamedTuple):
    """Stands for a class or function that a pickle names; ``make`` checks its arguments."""

    name: str
    make: Optional[Callable] = None
    dtype: Optional[torch.dtype] = None


# opcodes of one byte or a few, each of which takes a hundred bytes of memory or more
_COUNTED = {
    ord(getattr(pickle, code)): 1
    for code in "MARK EMPTY_DICT EMPTY_LIST EMPTY_SET TUPLE TUPLE1 TUPLE2 TUPLE3 MEMOIZE GLOBAL "
    "STACK_GLOBAL".split()
}
_COUNTED[ord(pickle.EMPTY_SET)] = _LARGE


def _counted(code: int, number: int) -> Callable:
    """Return pickle's own handler of an opcode, with its values counted before."""

    def handler(self: Any) -> None:
        self.count(number)
        _PythonUnpickler.dispatch[code](self)

    return handler


class _Opcodes(dict):
    """Handlers by opcode."""

    def __missing__(self, code: int) -> Any:
        raise Refused(f"the pickle opcode {code:#x}")


_PythonUnpickler: Any = pickle._Unpickler  # the one in Python, whose opcodes can be replaced


class Unpickler(_PythonUnpickler):
    """An unpickler that calls and changes nothing but what it has made itself.

    Args:
        stream: where the pickle begins.
        storage: returns the bytes of a storage, from its key and its size in bytes.
        most: how many values may be made; one that is large, or a copy, counts as several.
    """

    def __init__(self, stream: BinaryIO, storage: Callable[[str, int], bytearray], most: int):
        super().__init__(stream)
        self.storage = storage
        self.left, self.large_keys_left = most, _MOST_LARGE_KEYS

    def count(self, number: int) -> None:
        """Count values before they are made."""
        self.left -= number
        if self.left < 0:
            raise Refused("more values than a file of this length needs")

    def find_class(self, module: str, name: str) -> Maker:
        """Return what makes an object of a class, or stands for a function's result."""
        if name in _DTYPES and module in ("torch", "torch.storage"):
            return Maker(name, dtype=_DTYPES[name])
        try:
            return Maker(f"{module}.{name}", _MAKERS[module, name])
        except KeyError:
            raise Refused(f"{module}.{name}") from None

    def _make(self) -> None:
        arguments, maker = self.stack.pop(), self.stack.pop()
        if type(maker) is not Maker or maker.make is None or type(arguments) is not tuple:
            raise Refused("a call of something else than a known type")
        self.count(_LARGE + sum(map(_size_of, arguments)))
        self.append(maker.make(*arguments))

    def _build(self) -> None:
        state, value = self.stack.pop(), self.stack[-1]
        self.count(_size_of(state) + sum(map(_size_of, state if type(state) is tuple else ())))
        if isinstance(value, argparse.Namespace):
            for key in _expect(dict, state):
                if type(key) is not str or key.startswith("__"):
                    raise Refused(f"the attribute {key!s:.60}")
            vars(value).update(state)
        elif type(value) is collections.OrderedDict:
            pass  # versions of a model's layers, and how torch assigns weights: not needed
        elif isinstance(value, np.dtype):
            order, rest = _expect(tuple, state)[1], state[2:]
            if state[0] != 3 or order not in ("<", ">", "|") or rest != _DTYPE_STATE:
                raise Refused("a numpy.dtype that is not a number's")
            if order not in ("|", "<" if sys.byteorder == "little" else ">"):
                raise ValueError("the order of bytes is that of another machine")
        elif type(value) is np.ndarray:
            _, shape, dtype, fortran, data = _expect(tuple, state)
            _check_sizes(_expect(tuple, shape))
            if len(_expect(bytes, data)) != math.prod(shape) * _number_dtype(dtype).itemsize:
                raise Refused("a numpy.ndarray of another size")
            value.__setstate__((1, shape, dtype, fortran, data))
        else:
            raise Refused(f"a state for {type(value).__name__}")

    def _set_items(self) -> None:
        items = self.pop_mark()
        target = self._target(dict, collections.OrderedDict)
        target.update(zip(self._check_keys(items[::2]), items[1::2]))

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._target(dict, collections.OrderedDict).update(zip(self._check_keys([key]), [value]))

    def _append_all(self) -> None:
        items = self.pop_mark()
        self._target(list).extend(items)

    def _append_one(self) -> None:
        item = self.stack.pop()
        self._target(list).append(item)

    def _add_all(self) -> None:
        items = self.pop_mark()
        self._target(set).update(self._check_keys(items))

    def _check_keys(self, keys: Any) -> Any:
        self.large_keys_left -= sum(map(_is_large, keys))
        return _check_keys(keys, self.large_keys_left)

    def _target(self, *kinds: type) -> Any:
        """Return the container on top of the stack, which items are for."""
        if type(self.stack[-1]) not in kinds:
            raise Refused(f"items for {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def _load_storage(self) -> None:
        kind, maker, key, _, count, *view = _expect(tuple, self.stack.pop())
        if kind != "storage" or type(maker) is not Maker or not maker.dtype or any(view):
            raise Refused("a reference to something else than weights")
        _check_sizes((count,))
        self.count(_LARGE)
        size = count * torch.empty(0, dtype=maker.dtype).element_size()
        buffer = self.storage(_expect(str, key), size)
        if len(buffer) != size:
            raise Refused("weights of another size than they say")
        # frombuffer takes nothing empty
        flat = torch.frombuffer(buffer, dtype=maker.dtype) if buffer else torch.empty(0)
        self.append(_Storage(flat.to(maker.dtype)))

    def _remember(self) -> None:
        self._keep_at(self.read(1)[0])

    def _remember_long(self) -> None:
        self._keep_at(int.from_bytes(self.read(4), "little"))

    def _keep_at(self, index: int) -> None:
        if index > len(self.memo):
            raise Refused("values that are not numbered in their order")
        self.memo[index] = self.stack[-1]

    # pickle's own handlers, of what makes plain values and containers; then ours
    dispatch = _Opcodes(
        (ord(getattr(pickle, code)), _PythonUnpickler.dispatch[ord(getattr(pickle, code))])
        for code in (
            "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 "
            "BINFLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 "
            "EMPTY_DICT EMPTY_LIST EMPTY_TUPLE EMPTY_SET TUPLE TUPLE1 TUPLE2 TUPLE3 "
            "MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL"
        ).split()
    )
    dispatch.update((code, _counted(code, number)) for code, number in _COUNTED.items())
    dispatch.update({
        ord(pickle.BINPUT): _remember, ord(pickle.LONG_BINPUT): _remember_long,
        ord(pickle.REDUCE): _make, ord(pickle.NEWOBJ): _make, ord(pickle.BUILD): _build,
        ord(pickle.SETITEM): _set_item, ord(pickle.SETITEMS): _set_items,
        ord(pickle.APPEND): _append_one, ord(pickle.APPENDS): _append_all,
        ord(pickle.ADDITEMS): _add_all, ord(pickle.BINPERSID): _load_storage,
    })  # fmt: skip


class _Storage(NamedTuple):
    """The numbers that tensors are views of, ``(count,)``."""

    flat: Tensor


def _expect(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Refused(f"a {type(value).__name__} in place of a {kind.__name__}")
    return value


def _size_of(value: Any) -> int:
    """Return what a copy of a value counts."""
    if type(value) in (str, bytes):
        return len(value) // _TEXT
    return len(value) if type(value) in (dict, list, tuple) else 0


def _is_large(key: Any) -> bool:
    return type(key) is float or type(key) is int and abs(key) >= _SMALL_KEY


def _check_keys(keys: Any, large_keys_left: int = -1) -> Any:
    """Return keys whose hashes differ; a million equal ones take hours."""
    for key in keys:
        if type(key) not in _KEYS or (type(key) is int and abs(key) >= _EQUAL_HASHES):
            raise Refused(f"a {type(key).__name__} as a key")
        if large_keys_left < 0 and _is_large(key):
            raise Refused("many large numbers as keys")
    return keys


def _check_sizes(values: Any) -> None:
    if len(values) > _MOST_DIMENSIONS:
        raise Refused("more dimensions than there are")
    if any(type(value) is not int or not 0 <= value < 1 << 63 for value in values):
        raise Refused("sizes that are not natural numbers")


def _tensor(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any = False, *_: Any
) -> Tensor:
    flat = _expect(_Storage, storage).flat
    for numbers in ((offset,), size, stride):
        _check_sizes(numbers)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    count = math.prod(size)
    if len(size) != len(stride) or count > flat.numel() or (count and last >= flat.numel()):
        raise Refused("a tensor beyond its weights")
    if not count and max(size) > _WIDEST_EMPTY:
        raise Refused("a tensor that is wide and empty")
    return flat.as_strided(size, stride, offset if count else 0).requires_grad_(bool(grad))


def _tensor_with_attributes(rebuild: Any, kind: Any, arguments: Any, _: Any) -> Tensor:
    """Make a tensor without the attributes that fairscale, for one, has put on it."""
    if rebuild != Maker("torch._utils._rebuild_tensor_v2", _tensor) or kind != Maker(
        "torch.Tensor"
    ):
        raise Refused("a tensor made in another way")
    return _tensor(*_expect(tuple, arguments))


def _number_dtype(value: Any) -> np.dtype:
    if not isinstance(value, np.dtype) or value.kind not in "biufc" or value.hasobject:
        raise Refused("a numpy.dtype that is not a number's")
    return value


def _numpy_dtype(code: Any, *_: Any) -> np.dtype:
    if len(_expect(str, code)) > _LONGEST_CODE:
        raise Refused("a numpy.dtype that is not a number's")
    return _number_dtype(np.dtype(code))


def _numpy_number(dtype: Any, data: Any) -> Any:
    return np.frombuffer(_expect(bytes, data), _number_dtype(dtype), count=1)[0]


def _numpy_array(_: Any, shape: Any, code: Any) -> np.ndarray:
    if shape != (0,) or code not in (b"b", "b"):
        raise Refused("a numpy.ndarray made in another way")
    return np.empty(0, np.int8)


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise Refused(f"the encoding {encoding!r}")
    return _expect(str, text).encode("latin1")


def _ordered(pairs: Any = ()) -> "collections.OrderedDict":
    return collections.OrderedDict((_check_keys([key])[0], value) for key, value in pairs)


def _size(numbers: Any = ()) -> torch.Size:
    _check_sizes(numbers)
    return torch.Size(numbers)


def _set(items: Any = ()) -> set:
    return set(_check_keys(_expect(list, items)))


_MAKERS: Dict[Any, Optional[Callable]] = {
    ("argparse", "Namespace"): lambda: argparse.Namespace(),  # without arguments
    ("collections", "OrderedDict"): _ordered,
    ("torch", "Size"): _size,
    ("torch", "device"): lambda kind, *index: torch.device(_expect(str, kind), *index),
    ("torch", "Tensor"): None,
    ("torch._tensor", "_rebuild_from_type_v2"): _tensor_with_attributes,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, grad, *_: torch.nn.Parameter(
        _expect(Tensor, tensor), bool(grad)
    ),
    ("_codecs", "encode"): _encoded,  # of bytes, in old pickles
    ("__builtin__", "set"): _set,
    ("builtins", "set"): _set,
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _numpy_dtype,
    **{
        (f"numpy.{core}.multiarray", name): make
        for core in ("core", "_core")
        for name, make in (("_reconstruct", _numpy_array), ("scalar", _numpy_number))
    },
}

"""Signatures of the positions of a checkpoint, in one line, and their comparison.

Beside them, a hash of the dictionaries: two of one size but another order fit the same weights.
"""

import hashlib
from argparse import Namespace
from typing import Any, Dict, List, Mapping, Optional

from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY, FairseqLanguageModel
from fairseq.models.roberta.model import RobertaModel

from fairseq_posenc import encodings, options, register_all
from fairseq_posenc.checkpoints.groups import group_options, name_of
from fairseq_posenc.encodings.longest import options_by_length
from fairseq_posenc.errors import printable
from fairseq_posenc.guards import source_bos

# options that models record and no command line has
RECORDED = ("position_signature", "dictionary_hash")


def dictionary_hash(*dictionaries: Dictionary) -> str:
    """Return 16 hexadecimal digits that stand for the symbols of dictionaries, in their order."""
    digest = hashlib.sha256()
    for dictionary in dictionaries:
        # no symbol holds a line feed, and none is empty
        digest.update("".join(f"{symbol}\n" for symbol in [*dictionary.symbols, ""]).encode())
    return digest.hexdigest()[:16]


def model_options(state: Any) -> Dict[str, Any]:
    """Return the options of the model in a checkpoint; none if it has none."""
    args = dict(group_options(state, "model"))
    if source_bos.of_checkpoint(state):
        args[source_bos.OPTION] = True
    name_older_defaults(args)
    return args


def is_from_checkpoint(args: Any) -> bool:
    """Return whether a model's options are those of a checkpoint, which is read, not trained."""
    return bool(getattr(args, "position_signature", None))


def name_older_defaults(args: Dict[str, Any]) -> bool:
    """Write out defaults of earlier versions that had no option, and return whether there are any.

    ``conditional`` convolved BERT's [CLS] like any token; models that were trained so go on. The
    options are from a checkpoint if they have a signature; they are changed in place.
    """
    signature = str(args.get("position_signature"))
    # only BERT models have segments
    is_bert = signature.startswith("position:conditional|") and "|segments:" in signature
    if not is_bert or "|convolve-cls:" in signature:
        return False
    args["position_convolve_cls"] = True
    args["position_signature"] = f"{signature}|convolve-cls:yes"
    return True


def of_checkpoint(state: Any) -> str:
    """Return the signature of a checkpoint.

    Checkpoints of stock models have none: they count as what their options say of fairseq's own
    positions.

    Raises:
        UsageError: its options name an encoding that does not exist.
    """
    args = model_options(state)
    signature = args.get("position_signature")
    if isinstance(signature, str):
        signature = printable(signature)
    else:
        name = encoding_of(args)
        if name is None:
            signature = "position:" + " and ".join(_stock_types(args)) + ", as fairseq has them"
        else:
            signature = options.signature(Namespace(**{**args, "position_encoding": name}))
    # earlier versions did not sign it
    unsigned = args.get(source_bos.OPTION) and "|source-bos:" not in signature
    return f"{signature}|source-bos:yes" if unsigned else signature


def of_run(state: Any, defaults: Mapping[str, Any]) -> str:
    """Return the signature of a checkpoint, with the options that follow from its longest inputs.

    Args:
        defaults: of the options of its model.
    """
    signature, recorded = of_checkpoint(state), model_options(state)
    args = {**defaults, **{key: value for key, value in recorded.items() if value is not None}}
    name = encoding_of(args)
    if name is None:
        return signature
    chosen = options.chosen(Namespace(**{**args, "position_encoding": name}))
    chosen = {**encodings.options(name), **chosen}
    by_length: Dict[str, List[str]] = {}
    for side in "source", "target":
        length = args.get(f"max_{side}_positions")
        if length is None:
            continue  # without an encoder, or without a decoder
        values = options_by_length(chosen, length, decoder=side == "target")
        for option, value in values.items():
            by_length.setdefault(option.replace("_", "-"), []).append(str(value))
    fields = {name: "/".join(dict.fromkeys(values)) for name, values in by_length.items()}
    return "|".join(":".join(field) for field in {**_split(signature), **fields}.items())


def encoding_of(args: Mapping[str, Any]) -> Optional[str]:
    """Return the encoding that a checkpoint's options stand for.

    ``None`` if it is fairseq's own and none of ours is alike: learned on one side only, or
    sinusoids in ``roberta``, which are larger than ours.
    """
    if args.get("position_encoding"):
        return options.encoding_name(Namespace(**args))
    stock_types = set(_stock_types(args))
    if len(stock_types) > 1 or (_is_a(args, RobertaModel) and stock_types == {"sinusoidal"}):
        return None
    return stock_types.pop()


def same(first: str, second: str, version: bool = False) -> bool:
    """Return whether two signatures are of the same positions, and of one version if asked for."""
    ignored = {} if version else {"version": ""}
    return {**_fields(first), **ignored} == {**_fields(second), **ignored}


def _split(signature: str) -> Dict[str, str]:
    parts = (field.partition(":") for field in signature.split("|"))
    return {name: value for name, _, value in parts}


def _fields(signature: str) -> Dict[str, str]:
    fields = _split(signature)
    # only BERT models have segments; few have BOS before sources, or hide EOS
    absent = {"segments": "none", "source-bos": "no", "source-eos": "yes"}
    if fields.get("position") in encodings.names():
        # an option that the encoding got in a later version
        for option, value in encodings.options(fields["position"]).items():
            absent[option.replace("_", "-")] = encodings.format_value(value)
    return {**absent, **fields}


def _is_a(args: Mapping[str, Any], model_class: type) -> bool:
    """Return whether the architecture that options name is of a class of models."""
    register_all()
    model = ARCH_MODEL_REGISTRY.get(name_of(args, "arch"))
    return model is not None and issubclass(model, model_class)


def _stock_types(args: Mapping[str, Any]) -> List[str]:
    """Return the type of fairseq's own positions, for each side of the model."""
    if args.get("no_token_positional_embeddings"):
        return ["none"]
    is_roberta = _is_a(args, RobertaModel)
    sides, stock_types = ["encoder", "decoder"], []
    if is_roberta:
        sides = ["encoder"]
    elif _is_a(args, FairseqLanguageModel):
        sides = ["decoder"]
    for side in sides:
        # models with a dataclass have a part for each side
        part = args.get(side)
        learned = part.get("learned_pos") if isinstance(part, Mapping) else None
        learned = args.get(f"{side}_learned_pos", is_roberta if learned is None else learned)
        stock_types.append("learned" if learned else "sinusoidal")
    return stock_types

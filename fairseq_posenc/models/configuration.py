"""Models from the configurations of ``fairseq-hydra-train``."""

from argparse import Namespace
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY, BaseFairseqModel
from omegaconf import DictConfig, OmegaConf, open_dict


def build_from_configuration(model: Any, cfg: DictConfig, task: Any) -> BaseFairseqModel:
    """Build a model from a configuration, as from the options of ``fairseq-train``.

    Architectures and ``TransformerConfig`` of fairseq are made for these: of a configuration they
    drop all options of positions and, with omegaconf 2.0, the sizes of the architecture.

    ``cfg`` is the model's part of it, and gets all options that the model ends up with.
    """
    root: Any = cfg._get_root()
    run = root.get("checkpoint")
    given: Any = {} if run is None else OmegaConf.to_container(run, resolve=True)
    own: Any = OmegaConf.to_container(cfg, resolve=True)
    args = Namespace(**{**given, **{k: v for k, v in own.items() if v is not None}})
    args.arch = getattr(args, "arch", None) or args._name
    ARCH_CONFIG_REGISTRY[args.arch](args)
    args.base_layers = getattr(args, "base_layers", 0)  # the trainer asks for it
    built = model.build_model(args, task)
    with open_dict(cfg):
        for name, value in vars(args).items():
            if name in own or name not in given:
                cfg[name] = value
    return built

"""Optimizers by the names of their options."""

from fairseq_posenc.optim.lamb import PosencLamb, PosencLambConfig
from fairseq_posenc.optim.radam import PosencRAdam, PosencRAdamConfig

KINDS = {"lamb": (PosencLamb, PosencLambConfig), "radam": (PosencRAdam, PosencRAdamConfig)}


def optimizer_of(kind, parameters, lr=0.1, **options):
    optimizer, config = KINDS[kind]
    return optimizer(config(lr=[lr], **options), parameters)

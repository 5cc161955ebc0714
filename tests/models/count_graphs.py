"""Count the graphs that torch.compile makes of encoders and of a step of decoders.

usage: count_graphs.py [OUTPUT.json]

Prints the table of docs/speed.md; the file gets the counts, for the tests. Nothing is compiled to
machine code. Models are small, of 2+2 layers.
"""

import json
import logging
import sys
import warnings
from types import SimpleNamespace

import torch

from fairseq_posenc.encodings import names
from tests.tiny import build_model, dictionary_of

STOCK = "stock"
DICTIONARY = dictionary_of(46)
SOURCE = torch.randint(4, 50, (3, 11), generator=torch.Generator().manual_seed(1))
SOURCE[1, :2] = DICTIONARY.pad()
LENGTHS = SOURCE.ne(DICTIONARY.pad()).sum(1)


def build(name):
    """Build a small model without dropout; the name is an encoding's or STOCK."""
    task = SimpleNamespace(source_dictionary=DICTIONARY, target_dictionary=DICTIONARY)
    options = dict(position_encoding=name, max_source_positions=64, max_target_positions=64)
    return build_model("transformer", task, stock=name == STOCK, **options)


def encode(model, compiled):
    """Return the encoder's output in training, and the gradients of an arbitrary loss."""
    torch.manual_seed(1)
    encoder = compiled(model.encoder.train())
    output = encoder(SOURCE, LENGTHS)["encoder_out"][0]
    parameters = [x for x in model.encoder.parameters() if x.requires_grad]
    return [output, *torch.autograd.grad(output.square().mean(), parameters)]


@torch.no_grad()
def decode(model, compiled):
    """Return what the third step of decoding says, the first two not compiled."""
    source, state = model.eval().encoder(SOURCE, LENGTHS), {}
    for length in (1, 2, 3):
        decoder = compiled(model.decoder) if length == 3 else model.decoder
        output = decoder(SOURCE[:, -length:], source, incremental_state=state)[0]
    return [output]


def count(name, run):
    """Return how many graphs there are, in how many of them layers are, and the largest error."""
    model, graphs = build(name), []

    def backend(graph, inputs):
        graphs.append(str(graph.graph))
        return graph.forward

    expected = run(model, lambda part: part)
    torch._dynamo.reset()
    found = run(model, lambda part: torch.compile(part, backend=backend))
    error = max((x - y).abs().max().item() for x, y in zip(expected, found))
    layers = sum("modules_layers_" in graph for graph in graphs)
    return {"graphs": len(graphs), "of layers": layers, "error": error}


def main():
    """Count, write and print."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    runs = {"encoder": encode, "step": decode}
    found = {
        name: {case: count(name, run) for case, run in runs.items()} for name in [STOCK, *names()]
    }
    if sys.argv[1:]:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(found, file)
    print("| | encoder, training | decoder, step of generation |\n|---|---:|---:|")
    names_of = {}
    for name, cases in found.items():
        breaks = " | ".join(str(case["graphs"] - 1) for case in cases.values())
        names_of.setdefault(breaks, []).append(name)
    for breaks, equal in names_of.items():
        print(f"| {', '.join(equal)} | {breaks} |")


if __name__ == "__main__":
    main()

"""List every position encoding, or some, with its options and their defaults.

    posenc encodings             all
    posenc encodings cape shaw   these

An option that the chosen encoding does not read is an error in fairseq-train.
"""

from fairseq_posenc.tools.arguments import command_parser


def main() -> None:
    """Print the list."""
    parser = command_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="ENCODING")
    chosen = parser.parse_args().names

    from fairseq_posenc import encodings
    from fairseq_posenc.errors import UsageError
    from fairseq_posenc.options import DEFAULT, OPTIONS

    unknown = [name for name in chosen if name not in encodings.names()]
    if unknown:
        raise UsageError(f"no encoding {unknown[0]}; choose from {', '.join(encodings.names())}")
    for name in chosen or encodings.names():
        title = str(encodings.TABLE[name].__doc__).split("\n")[0]
        print(f"{name}{' (default)' if name == DEFAULT else ''}: {title}")
        for option, default in encodings.options(name).items():
            flag = f"--position-{option.replace('_', '-')} {encodings.format_value(default)}"
            print(f"    {flag:34} {OPTIONS[option].help}")

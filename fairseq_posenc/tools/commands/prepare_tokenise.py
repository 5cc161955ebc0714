"""Tokenise text as Moses does (sacremoses); reads .gz, .bz2 and .xz too.

    posenc prepare tokenise --language de --input train.de --output train.tok.de

With --moses, Moses' own Perl scripts do it; sacremoses differs from them in a few lines.
"""

from fairseq_posenc.tools.arguments import add_workers, command_parser
from fairseq_posenc.tools.output_options import FILE, add_output


def main() -> None:
    """Parse the command line and run."""
    parser = command_parser(__doc__)
    parser.add_argument("--language", required=True, help="for example de")
    parser.add_argument("--input", required=True, help="UTF-8 text, one sentence a line")
    add_output(parser, FILE, required=True)
    add_workers(parser.add_argument)
    parser.add_argument("--moses", metavar="FOLDER", help="run the scripts of this mosesdecoder")
    parser.add_argument(
        "--normalise-punctuation",
        action="store_true",
        help="before: „ “ to plain quotes, – to a hyphen and so on, which no detokeniser undoes",
    )
    arguments = parser.parse_args()
    from fairseq_posenc.tools.translation.segmentation import moses
    from fairseq_posenc.tools.translation.tokens import tokenise_file

    settings = moses(arguments.language, arguments.normalise_punctuation)
    tokenise_file(arguments.input, arguments.output, settings, arguments.workers, arguments.moses)

"""Download a file: continue what was cut, verify, try several mirrors, unpack.

    posenc prepare download --output raw/CoLA.zip --unpack raw https://…/CoLA.zip https://mirror/…

The file gets its name only when it is whole: its length is checked, and its checksum or, without
one, that an archive can be read to its end. Started again, it does nothing, or continues.
"""

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.downloads.archives import unpack
from fairseq_posenc.tools.downloads.download import Checksum, download
from fairseq_posenc.tools.output_options import FILE, FOLDER, add_output


def main() -> None:
    """Parse the command line, download and unpack."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("urls", nargs="+", metavar="URL", help="the file; further ones are tried if it fails")
    help_text = "where to write it"
    add_output(parser, FILE, required=True, metavar="FILE", help=help_text)
    add("--checksum", metavar="HEX", help="md5, sha1, sha256 or sha512")
    help_text = "unpack it into this folder too"
    add_output(parser, FOLDER, "--unpack", metavar="FOLDER", help=help_text)
    add("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args()
    checksum = Checksum.parse(args.checksum) if args.checksum else None
    download(args.urls, args.output, checksum, args.quiet)
    if args.unpack:
        print(f"{unpack(args.output, args.unpack)} files unpacked into {args.unpack}")

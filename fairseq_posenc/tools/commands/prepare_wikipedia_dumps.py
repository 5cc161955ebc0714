"""Download the dumps of Wikipedia in some languages, verified by Wikimedia's checksums.

    posenc prepare wikipedia-dumps --languages en,de --output raw

Started again, it continues. With --local, nothing is loaded, and the languages' dumps in the folder
are printed, one a line.
"""

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.prepare.downloads.dumps import WIKIMEDIA, fetch_dump, find_dumps


def main() -> None:
    """Parse the command line, and download or find."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--languages", required=True, metavar="LIST", help="as in the address: en,simple,zh-yue")
    add("--output", required=True, metavar="FOLDER")
    add("--date", default="latest", metavar="YYYYMMDD", help="default: latest")
    add("--url", default=WIKIMEDIA, metavar="LIST", help=f"mirrors (default: {WIKIMEDIA})")
    add("--local", action="store_true", help="do not download")
    add("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args()
    for language in args.languages.split(","):
        if args.local:
            print(*find_dumps(args.output, language), sep="\n")
        else:
            mirrors = args.url.split(",")
            print(fetch_dump(language, args.output, mirrors, args.date, args.quiet), flush=True)

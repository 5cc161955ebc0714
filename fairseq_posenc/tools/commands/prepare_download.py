"""Download a file: continue what was cut, verify, try several mirrors, unpack.

    posenc prepare download --output raw/CoLA.zip --unpack raw https://…/CoLA.zip https://mirror/…

The file gets its name only when it is whole: its length is checked, and its checksum or, without
one, the integrity of the archive. Started again, it does nothing, or continues.
"""

import argparse
import os

from fairseq_posenc.errors import UsageError
from fairseq_posenc.files import read_lines
from fairseq_posenc.tools.prepare.downloads.archives import Checksum, unpack
from fairseq_posenc.tools.prepare.downloads.download import download
from fairseq_posenc.tools.prepare.downloads.web import Patience, fetch_text


def checksum_of(given: str, listing: str, url: str):
    """Return the checksum that was given, or the one in a listing of them, or None."""
    if given:
        return Checksum.parse(given)
    if not listing:
        return None
    lines = fetch_text(listing).splitlines() if "://" in listing else read_lines(listing)
    name = os.path.basename(url.split("?")[0])
    found = Checksum.from_listing(lines, name)
    if found is None:
        raise UsageError(f"{listing} has no checksum of {name}")
    return found


def main() -> None:
    """Parse the command line, download and unpack."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("urls", nargs="+", metavar="URL", help="the file; further ones are tried if it fails")
    add("--output", required=True, metavar="FILE", help="where to write it")
    checksums = parser.add_mutually_exclusive_group()
    checksums.add_argument("--checksum", metavar="HEX", help="md5, sha1, sha256 or sha512")
    checksums.add_argument("--checksums", metavar="FILE|URL", help="output of sha1sum or the like")
    add("--unpack", metavar="FOLDER", help="unpack it into this folder too")
    add("--attempts", type=int, default=5, metavar="N", help="tries in vain per mirror (5)")
    add("--timeout", type=float, default=60, metavar="S", help="seconds of silence allowed (60)")
    add("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args()
    checksum = checksum_of(args.checksum, args.checksums, args.urls[0])
    patience = Patience(attempts=args.attempts, timeout=args.timeout)
    download(args.urls, args.output, checksum, args.quiet, patience)
    if args.unpack:
        print(f"{unpack(args.output, args.unpack)} files unpacked into {args.unpack}")

"""Serve a folder to programs on this machine, over http; on demand with faults.

    python -m fairseq_posenc.tools.corpus.serve mirror --fault 'cut=*europarl*@2' &

prints the port and writes it to the file, which is there while the server is. It ends with the
process that started it, or on a signal. The host in an address is ignored, so that it can also
stand in for other hosts as their http_proxy. Faults, each for N requests of every file that
matches, with N from @N:

    cut=PATTERN        the connection ends after half of what is missing (N: 1)
    500=PATTERN        server error (1)
    404=PATTERN        not found (always)
    wrong=PATTERN      a web page instead of the file (always)
    truncated=PATTERN  the first half of the file, as if it were all (always)
"""

import argparse

from fairseq_posenc.tools.corpus.mirror.faults import Fault
from fairseq_posenc.tools.corpus.mirror.server import MirrorServer, serve


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", metavar="FOLDER")
    add("--port", type=int, default=0, help="default: any that is free")
    add("--port-file", metavar="FILE", help="where to write the port")
    add("--fault", action="append", default=[], metavar="KIND=PATTERN[@N]", help="see above")
    add("--verbose", action="store_true", help="a line to stderr for every request")
    args = parser.parse_args()
    faults = [Fault.parse(text) for text in args.fault]
    serve(MirrorServer(args.folder, args.port, faults, args.verbose), args.port_file)


if __name__ == "__main__":
    main()

"""Turn dumps of Wikipedia (…-pages-articles.xml.bz2) into text for posenc prepare text.

    posenc prepare wikipedia-text --output text raw/enwiki-20250101-pages-articles.xml.bz2

writes text/enwiki-20250101-pages-articles.txt: articles without markup, a paragraph a line, a blank
line between documents. Lists, tables, headings and redirects are left out. Dumps that were
extracted before are skipped.
"""

import os

from fairseq_posenc.tools.arguments import command_parser
from fairseq_posenc.tools.prepare.text.wikipedia import extract


def main() -> None:
    """Parse the command line and extract."""
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("dumps", nargs="+", metavar="DUMP", help="XML, plain, .bz2 or .gz")
    add("--output", required=True, metavar="FOLDER")
    add("--workers", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    add("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args()
    for dump in args.dumps:
        # parts of a dump differ behind ".xml": …-pages-articles2.xml-p41243p151573.bz2
        name = os.path.basename(dump).replace(".xml", "")
        name = os.path.splitext(name)[0] if name.endswith((".bz2", ".gz")) else name
        output = os.path.join(args.output, f"{name}.txt")
        if os.path.exists(output):
            print(f"{output}: there already")
        else:
            count = extract(dump, output, args.workers, args.quiet)
            print(f"{output}: {count} articles", flush=True)

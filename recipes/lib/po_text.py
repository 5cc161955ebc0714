"""Parallel text from a folder of PO files, whole files held out.

    python -m recipes.lib.po_text python-docs-es --language es --output text

writes ``text/{train,valid,test}.{en,es}``, a paragraph a line. Untranslated and fuzzy entries, and
those that are the same in both languages, are left out. The name of a file, by its checksum, says
where it belongs: one in ten is for the test, one in twenty for validation. Paragraphs that stand in
several files are left out of the training text where another set has them.
"""

import os
import zlib
from pathlib import Path
from typing import Dict, List, Tuple

from fairseq_posenc.data.languages import check_language
from fairseq_posenc.errors import UsageError
from fairseq_posenc.tools.arguments import plain_parser
from fairseq_posenc.tools.writing import replacing

SPLITS = ("train", "valid", "test")


def split_of(name: str) -> str:
    """Return the set that a file belongs to, by its name in the folder, with ``/``."""
    number = zlib.crc32(name.encode()) % 20
    return "test" if number < 2 else "valid" if number == 2 else "train"


def read_pairs(folder: str) -> Dict[str, List[Tuple[str, str]]]:
    """Return the pairs of each set, in the order of the files' names.

    Raises:
        UsageError: there are no PO files, or one of them is none.
    """
    import polib

    pairs: Dict[str, List[Tuple[str, str]]] = {name: [] for name in SPLITS}
    files = sorted(Path(folder).rglob("*.po"))
    if not files:
        raise UsageError(f"{folder} has no PO files")
    for file in files:
        try:
            # in the encoding that its header names; a path is taken for text if no file is there
            entries = polib.pofile(str(file)).translated_entries()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {file}: {error}") from None
        split = pairs[split_of(file.relative_to(folder).as_posix())]
        for entry in entries:
            source, target = (" ".join(text.split()) for text in (entry.msgid, entry.msgstr))
            if source and target and source != target:
                split.append((source, target))
    held_out = {source for name in SPLITS[1:] for source, _ in pairs[name]}
    pairs["train"] = [pair for pair in pairs["train"] if pair[0] not in held_out]
    return pairs


def main() -> None:
    """Parse the command line and write the text."""
    parser = plain_parser(__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="with PO files, at any depth")
    parser.add_argument("--language", required=True, help="what they translate to")
    parser.add_argument("--output", required=True, metavar="FOLDER")
    args = parser.parse_args()
    check_language(args.language, "--language")
    os.makedirs(args.output, exist_ok=True)
    for name, pairs in read_pairs(args.folder).items():
        for side, language in enumerate(("en", args.language)):
            with replacing(f"{args.output}/{name}.{language}") as stream:
                stream.writelines(f"{pair[side]}\n" for pair in pairs)
        print(f"{name}: {len(pairs)} pairs")


if __name__ == "__main__":
    main()

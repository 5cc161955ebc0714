"""Parallel text from PO files."""

import pytest

from fairseq_posenc.errors import UsageError
from recipes.lib import po_text

pytest.importorskip("polib")


def entry(source, target, flag=""):
    return f'{flag}msgid "{source}"\nmsgstr "{target}"\n\n'


def test_whole_files_are_held_out_and_what_is_no_translation_is_left_out(tmp_path):
    names = [f"library/{number}.po" for number in range(60)]
    by_split = {
        split: [n for n in names if po_text.split_of(n) == split] for split in po_text.SPLITS
    }
    assert all(by_split.values()) and len(by_split["train"]) > 40
    (tmp_path / "library").mkdir()
    for name in names:
        text = entry(f"Page {name}", f"Hoja {name}") + entry("See also", "Ver también")
        text += (
            entry("fuzzy", "borroso", "#, fuzzy\n") + entry("print()", "print()") + entry("No", "")
        )
        (tmp_path / name).write_text(
            entry("", "Language: es\\n") + text + '#~ msgid "x"\n#~ msgstr "y"\n'
        )
    pairs = po_text.read_pairs(str(tmp_path))
    for split, found in pairs.items():
        expected = [(f"Page {name}", f"Hoja {name}") for name in sorted(by_split[split])]
        assert [pair for pair in found if pair[0] != "See also"] == expected
        # what several files have is not trained on and tested too
        assert found.count(("See also", "Ver también")) == (split != "train") * len(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "koi8-r"])
def test_a_file_is_read_in_the_encoding_that_its_header_names(tmp_path, encoding):
    target = "файл" if encoding == "koi8-r" else "déjà"
    charset = encoding.replace("-sig", "").upper()
    text = entry("", f"Content-Type: text/plain; charset={charset}\\n") + entry("File", target)
    (tmp_path / "a.po").write_bytes(text.encode(encoding))
    assert sum(po_text.read_pairs(str(tmp_path)).values(), []) == [("File", target)]


def test_a_folder_without_po_files_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no PO files"):
        po_text.read_pairs(str(tmp_path))
    (tmp_path / "a.po").write_bytes(b'msgid "\xff"\n')
    with pytest.raises(UsageError, match="cannot read .*a.po"):
        po_text.read_pairs(str(tmp_path))

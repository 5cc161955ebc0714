#!/usr/bin/env bash
# Guess: "opus_read -wm tmx" writes a TMX file of the alignment: a unit for each link.
# Seen:  a link of two sentences to two gives two units, one inside the other, with each sentence
#        beside the wrong one: tmxt reads "Dann kam sie" twice, as "He said yes" and as "Then she
#        came". Where a link has more sentences on one side, the file is no XML ("mismatched tag").
#        Links of one to one are right, and so is "-wm moses", with a line for each link.
# Versions: opustools 1.9.0, tmxt 0.2. Source: opustools/formatting.py, where <tu> is written for each
#        sentence of the source, and </tu> for each of the target.
# Why:   books and subtitles are full of such links. The number of pairs looks right, no word is said,
#        and a model learns wrong translations. With "-S 1 -T 1" the others are left out.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install opustools==1.9.0 tmxt==0.2 docopt==0.6.2
cd "$work"
cat >write_corpus.py <<'END'
import gzip
import sys
import zipfile

texts = {
    "de": ["Nichts geht verloren.", "Er sagte Ja.", "Dann kam sie."],
    "en": ["Nothing is lost.", "He said yes.", "Then she came."],
}
for language, lines in texts.items():
    with zipfile.ZipFile(f"Books_latest_raw_{language}.zip", "w") as archive:
        sentences = "".join(f'<s id="{n}">{line}</s>\n' for n, line in enumerate(lines, 1))
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<text>\n{sentences}</text>\n'
        archive.writestr(f"Books/raw/{language}/a.xml", text)
with gzip.open("Books_latest_xml_de-en.xml.gz", "wt") as stream:
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n<cesAlign version="1.0">\n')
    stream.write('<linkGrp targType="s" fromDoc="de/a.xml.gz" toDoc="en/a.xml.gz">\n')
    for number, targets in enumerate(sys.argv[1:]):
        stream.write(f'<link id="L{number}" xtargets="{targets}" />\n')
    stream.write("</linkGrp>\n</cesAlign>\n")
END
convert() { env/bin/opus_read -d Books -s de -t en -p raw -dl . "$@" >/dev/null 2>&1; }

env/bin/python write_corpus.py "1;1" "2 3;2 3"
convert -wm moses -w moses.de moses.en
convert -wm tmx -w two.tmx
env/bin/tmxt.py --codelist de,en two.tmx two.tsv
env/bin/python write_corpus.py "1;1" "2 3;2"
convert -wm tmx -w three.tmx
env/bin/pip list 2>/dev/null | grep -E 'opustools|tmxt'
echo "moses:" && paste moses.de moses.en
echo "tmx:" && cat two.tsv
! env/bin/python -c "from xml.etree import ElementTree; ElementTree.parse('three.tmx')" 2>error
tail -n 1 error
grep -q $'Er sagte Ja. Dann kam sie.\tHe said yes. Then she came.' <(paste moses.de moses.en)
grep -q $'Dann kam sie.\tHe said yes.' two.tsv
grep -q "mismatched tag" error

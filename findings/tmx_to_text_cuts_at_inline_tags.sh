#!/usr/bin/env bash
# Guess: a converter of TMX writes the text of every segment, without the inline tags in it.
# Seen:  tmx-to-text and mtdata write what stands before the first tag, and say that it is all. TMX 1.4
#        marks bold words, placeholders and links by <bpt>, <ept> and <ph>, so memories of programs
#        and their manuals are full of them. tmxt writes the whole text.
# Versions: tmx-to-text 0.1.8, mtdata 0.5.1, tmxt 0.2. Source: tmx_to_text/converttmx.py and
#        mtdata/tmx.py, which take the text of the element alone, and TMX 1.4b, "Content Markup".
# Why:   half sentences are trained on: both sides are cut, at places that do not belong together,
#        and the number of lines is right.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
# tmxt needs docopt, and does not say so
"$work/env/bin/pip" -qq install tmx-to-text==0.1.8 mtdata==0.5.1 tmxt==0.2 docopt==0.6.2
cd "$work"
cat >memory.tmx <<'TMX'
<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header srclang="en" datatype="html" segtype="sentence" o-tmf="po" adminlang="en"
 creationtool="editor" creationtoolversion="1"/>
<body>
<tu><tuv xml:lang="en"><seg>Press <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> to keep the file.</seg></tuv>
<tuv xml:lang="de"><seg>Mit <bpt i="1">&lt;b&gt;</bpt>Speichern<ept i="1">&lt;/b&gt;</ept> bleibt die Datei erhalten.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Nothing is lost.</seg></tuv><tuv xml:lang="de"><seg>Nichts geht verloren.</seg></tuv></tu>
</body>
</tmx>
TMX
env/bin/tmx-to-text convert -f memory.tmx -s en -t de -p text
paste text.en-de.en text.en-de.de
echo "mtdata:"
env/bin/python -m mtdata.tmx -i memory.tmx -l eng-deu 2>log | tee mtdata.tsv
echo "tmxt:"
env/bin/tmxt.py --codelist en,de memory.tmx tmxt.tsv
cat tmxt.tsv
[ "$(cat text.en-de.en)" = $'Press \nNothing is lost.' ]
[ "$(cat text.en-de.de)" = $'Mit \nNichts geht verloren.' ]
grep -q 'Save.*to keep the file.*bleibt die Datei erhalten' tmxt.tsv
[ "$(head -n 1 mtdata.tsv)" = $'Press\tMit' ]

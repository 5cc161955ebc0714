#!/usr/bin/env bash
# Guess: what "sacrebleu -t SET -l PAIR --echo ref" prints has a BLEU of 100 against that set.
# Seen:  14.61. --echo ref prints the reference whose name is first in the alphabet, of all that the
#        file of WMT has (A); scores are taken against those that the set names (C). No word is said.
# Versions: sacrebleu 2.6.0. Source: sacrebleu/utils.py, print_test_set, beside
#        sacrebleu/dataset/wmt_xml.py, get_reference_files.
# Why:   somebody who keeps the references in a file (for other metrics, for another program) has
#        those of other translators. Sets that score against another than A: wmt21/B, /C and /D;
#        with /AB and /AC the file has one of two. --echo ref:C prints the right one.
# The set is sacreBLEU's own wmt21/C; two sentences in WMT's format stand for its download.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" -qq install sacrebleu==2.6.0 lxml==6.1.3
cd "$work"
cat >wmt.xml <<'END'
<?xml version="1.0" encoding="utf-8"?>
<dataset id="newstest2021.en-de">
<doc origlang="en" id="a">
<src lang="en"><p><seg id="1">Two men walk a dog in the park.</seg><seg id="2">It rained all day.</seg></p></src>
<ref lang="de" translator="A"><p><seg id="1">Zwei Männer führen im Park einen Hund aus.</seg><seg id="2">Es goss den ganzen Tag.</seg></p></ref>
<ref lang="de" translator="C"><p><seg id="1">Zwei Herren gehen im Park mit einem Hund spazieren.</seg><seg id="2">Es hat den ganzen Tag geregnet.</seg></p></ref>
</doc>
</dataset>
END
cat >wmt21_c.py <<'END'
import os, shutil, sys
from sacrebleu.dataset import DATASETS
from sacrebleu.sacrebleu import main

dataset = DATASETS["wmt21/C"]
dataset.data, dataset.md5 = [], []  # nothing to download
os.makedirs(os.path.join(dataset._rawdir, "test"), exist_ok=True)
shutil.copy("wmt.xml", os.path.join(dataset._rawdir, "test/newstest2021.en-de.xml"))
sys.argv[1:1] = ["-t", "wmt21/C", "-l", "en-de"]
main()
END
export SACREBLEU="$work/cache"
for reference in ref ref:C; do
    env/bin/python wmt21_c.py --echo "$reference" >"$reference.txt" 2>/dev/null
    cat "$reference.txt"
    env/bin/python wmt21_c.py -i "$reference.txt" -b -w 2 2>/dev/null | tee "$reference.bleu"
done
env/bin/pip list 2>/dev/null | grep sacrebleu
grep -q "führen im Park" ref.txt
[ "$(cat ref:C.bleu)" = 100.00 ]
[ "$(cat ref.bleu)" = 14.61 ]

"""How fast the text of Wikipedia is extracted, on a made dump, by one process and by several.

    python tests/tools/prepare/text/measure_wikipedia.py --megabytes 30

Pages are made of what articles have: an infobox, paragraphs with links, references and templates,
a table, lists, some 9,000 characters. Seconds are of a core.
"""

import argparse
import bz2
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = (
    "the of and to in a is that was he for it with as his on be at by which one from city".split()
)
CITE = "<ref>{{{{cite web |url=https://a.b/{0} |title={1} |access-date=1 May 2020}}}}</ref>"
# of dumps, in bytes of bz2
DUMPS = {"English": 22e9, "100 languages": 101e9}


def page(number, dice):
    """Return the XML of a page."""

    def words(count):
        return " ".join(dice.choices(WORDS, k=count)) + str(dice.randrange(10**6))

    def sentence():
        kind = dice.random()
        linked = f"[[{words(2)}|{words(1)}]] {{{{convert|{number}|km|mi}}}} {words(6)}"
        cite = CITE.format(number, words(6)) if kind < 0.3 else ""
        return f"{words(8).capitalize()} '''{words(1)}''' {linked}.{cite}"

    box = "".join(f"| {words(1)} = [[{words(2)}]] {{{{flag|x}}}}\n" for _ in range(15))
    rows = "".join(f"|-\n| {words(2)} || {words(2)}\n" for _ in range(12))
    parts = [f"{{{{Infobox place\n{box}}}}}"]
    for _ in range(6):
        parts += [f"== {words(2)} ==", " ".join(sentence() for _ in range(6)), ""]
    parts += [f'{{| class="wikitable"\n{rows}|}}', *(f"* [[{words(3)}]]" for _ in range(10))]
    text = "\n".join(parts).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return (
        f"  <page><title>{number}</title><ns>0</ns><id>{number}</id><revision><text>{text}</text>"
        "</revision></page>\n"
    )


def seconds_of(*command):
    """Run a command of posenc prepare; return the seconds that its processes have worked."""
    words = [sys.executable, "-m", "fairseq_posenc.tools", "prepare", *map(str, command)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    return used.ru_utime + used.ru_stime


def main():
    """Make the dump and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=30, help="of XML (default: 30)")
    options = parser.parse_args()
    dice, pages, size = random.Random(1), ["<mediawiki>\n"], 0
    while size < options.megabytes * 1e6:
        pages.append(page(len(pages), dice))
        size += len(pages[-1])
    xml = "".join([*pages, "</mediawiki>\n"]).encode()
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "enwiki-1-pages-articles.xml"
        dump.write_bytes(xml)
        extracting = seconds_of("wikipedia-text", "--workers", 1, "--output", folder, dump)
        text = dump.with_suffix(".txt").stat().st_size
    packed = bz2.compress(xml)
    started = time.process_time()
    bz2.decompress(packed)
    unpacking = time.process_time() - started
    print(f"XML {len(xml) / 1e6:.1f} MB, {len(pages) - 1} pages, {text / 1e6:.1f} MB of text")
    print(f"extraction {len(xml) / 1e6 / extracting:.1f} MB of XML a second")
    print(f"bz2 {len(xml) / 1e6 / unpacking:.1f} MB of XML a second")
    for name, dumped in DUMPS.items():
        hours = [dumped * 100 / 22 / len(xml) * each / 3600 for each in (extracting, unpacking)]
        print(f"{name}: {hours[0]:.1f} core-hours to extract, {hours[1]:.1f} to unpack")


if __name__ == "__main__":
    main()

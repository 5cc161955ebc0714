"""What lies beside an exported model: the training's dictionaries and subwords, a model card."""

import os
import shutil
from typing import Any, Dict, List, Mapping, Optional

from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import get_lang_tok

from fairseq_posenc.data.languages import language_code, languages_of
from fairseq_posenc.data.segmentation import CODES, TOKENIZER, read_moses
from fairseq_posenc.data.subwords import DICTIONARY, MASK, SentencePiece, WordPiece
from fairseq_posenc.tools.convert.checkpoint import LANGUAGE_MODEL, ExportSource
from fairseq_posenc.tools.convert.huggingface.adapters import Adapter
from fairseq_posenc.tools.convert.huggingface.language_codes import LANGUAGES

TEXT_FILES = (CODES, TOKENIZER, SentencePiece.name, WordPiece.name, LANGUAGES)
_CARD = """---
library_name: transformers
tags: [{tags}]
---

# {title}

A model of fairseq with `fairseq_posenc`, written by `posenc export --to huggingface`.

- Positions: `{signature}`
- Class: `{model}`
- Agreement with fairseq: {agreement}
{notes}

```python
{code}
```

`posenc import --from` this folder `--output model.pt` makes the checkpoint again, weight by weight.
"""
TARGET = "target"  # the folder of its tokeniser, where it is another
_TEXT = "A text of your own."
# of an older one, FSMT translates otherwise, and GPT-NeoX has a random output layer
OLDEST = (5, 23)
_VERSION = f"""import transformers

if tuple(map(int, transformers.__version__.split(".")[:2])) < {OLDEST}:
    raise SystemExit("this model needs transformers {OLDEST[0]}.{OLDEST[1]} or later")
folder = "."  # of this README, or the model's name on the Hub
"""
_TRANSLATION = """{imports}from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
text = "{text}"
{tokenise}batch = tokenizer([text], return_tensors="pt", padding=True{cut})
{unknown}{second}longest = {longest}
made = model.generate(**batch, max_new_tokens=longest)
[made] = tokenizer.batch_decode(made, skip_special_tokens=True)
{plain}print(made)"""
_MULTILINGUAL = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
tokenizer.src_lang = "{source}"
batch = tokenizer(["{text}"], return_tensors="pt", padding=True{cut})
longest = {longest}
# {number} is {target}
made = model.generate(**batch, forced_bos_token_id={number}, max_new_tokens=longest)
print(tokenizer.batch_decode(made, skip_special_tokens=True))"""
_BERT = """from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForMaskedLM.from_pretrained(folder)
batch = tokenizer(["A text <mask> your own."], return_tensors="pt", padding=True{cut})
scores = model(**batch).logits
print(tokenizer.convert_ids_to_tokens(scores[0].argmax(-1)))"""

_LANGUAGE_MODEL = """from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)
batch = tokenizer("{text}", return_tensors="pt")
{unknown}[made] = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
print(made)

# several texts at once: tokenizer([…], padding=True, padding_side="left", …)"""
# --max-len-a 1.5 --max-len-b 10, and the end itself
_LONGEST = 'min(int(1.5 * batch["input_ids"].size(1)) + 11, {most})'


def write(
    source: ExportSource,
    adapter: Adapter,
    dictionary: Dictionary,
    folder: str,
    notes: List[str],
    measured: Optional[str],
    has_table: bool,
) -> None:
    """Write the model card into ``folder``. It holds no path: the folder may be published.

    The ``dictionary`` is that of the target. With a table of positions (``has_table``), the card
    cuts longer texts: FSMT replaces its table at the first one, the others fail.
    """
    parts: Dict[str, Any] = dict.fromkeys(("imports", "tokenise", "unknown", "second", "plain"), "")
    languages = [str(source.task.get(f"{side}_lang") or "") for side in ("source", "target")]
    parts["cut"] = ", truncation=True" if has_table else ""
    if "decoder" in source.stacks:
        parts["longest"] = _LONGEST.format(most=source.limits["decoder"])
    if source.is_multilingual:
        model_name, tag, code = "Translation of many languages", "translation", _MULTILINGUAL
        first, target, *_ = languages_of(source.task)
        number = dictionary.index(get_lang_tok(target, source.task["lang_tok_style"]))
        parts.update(source=first, target=target, number=number)
    elif len(source.stacks) == 2:
        model_name, tag, code = "Translation", "translation", _TRANSLATION
        if os.path.isfile(os.path.join(folder, TOKENIZER)):
            parts.update(_moses(os.path.join(folder, TOKENIZER), *languages))
    elif source.model_name == LANGUAGE_MODEL:
        model_name, tag, code = "Language model", "text-generation", _LANGUAGE_MODEL
    else:
        model_name, tag, code = "BERT", "fill-mask", _BERT
    if any("not in the dictionary" in note for note in notes):
        entries = next(iter(source.vocab_sizes.values()))
        parts["unknown"] = f'batch["input_ids"][batch["input_ids"] >= {entries}] = 3\n'
    if os.path.isdir(os.path.join(folder, TARGET)):
        parts["second"] = f'tokenizer = AutoTokenizer.from_pretrained(f"{{folder}}/{TARGET}")\n'
    text = _CARD.format(
        tags=tag,
        title=f"{model_name}, {' to '.join(languages)}" if languages[0] else model_name,
        signature=source.signature,
        model=adapter.model_class,
        agreement=measured or "not measured (`--check` does)",
        notes="\n".join(f"- {note}" for note in notes),
        code=_VERSION + code.format(text=_TEXT, **parts),
    )
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as stream:
        stream.write(text)


def _moses(file: str, source: str, target: str) -> Dict[str, str]:
    """Return what makes raw text Moses' tokens as ``tokeniser.json`` says, and raw text of them."""
    settings = read_moses(file, source)
    normalise = f'text = sacremoses.MosesPunctNormalizer("{settings.language}").normalize(text)'
    lines = {
        'text = text.replace("’", "\'")': settings.plain_quotes,
        normalise: settings.normalise,
        'text = regex.sub(r"\\p{C}", " ", text)': settings.printable,
        f'moses = sacremoses.MosesTokenizer("{settings.language}")': True,
        f"text = moses.tokenize(text, {settings.aggressive}, True, escape={settings.escape})": True,
        "text = text.lower()": settings.lowercase,
    }
    back = f'sacremoses.MosesDetokenizer("{language_code(target)}")'
    return {
        "imports": "import regex\n" * settings.printable + "import sacremoses\n",
        "tokenise": "".join(f"{line}\n" for line, is_used in lines.items() if is_used),
        "plain": f"made = {back}.detokenize(made.split())\n",
    }


def text_files(folder: str) -> Dict[str, str]:
    """Return the paths of dictionaries, subwords and tokeniser in a folder, by name."""
    names = sorted(n for n in os.listdir(folder) if n.startswith("dict.") or n in TEXT_FILES)
    return {name: os.path.join(folder, name) for name in names}


def copy_text_files(
    source: ExportSource, dictionaries: Mapping[str, Dictionary], data: str, folder: str
) -> None:
    """Write the dictionaries by fairseq's names, and copy what cuts text into subwords."""
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    for dictionary, language in zip(dictionaries.values(), languages):
        shared = len(dictionaries) == 1 or source.is_multilingual
        name = DICTIONARY if shared else f"dict.{language}.txt"
        written = Dictionary()
        for symbol, count in zip(dictionary.symbols, dictionary.count):
            if symbol != MASK or source.model_name != "posenc_bert":  # whose tasks add it
                written.add_symbol(symbol, count)
        written.save(os.path.join(folder, name))
    for name in TEXT_FILES:
        if os.path.isfile(os.path.join(data, name)):
            shutil.copy(os.path.join(data, name), folder)

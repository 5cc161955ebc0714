"""What lies beside an exported model: the training's dictionaries and subwords, a model card."""

import os
import shutil
from typing import Any, Dict, List, Mapping, Optional

from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import get_lang_tok

from fairseq_posenc.data.segmentation import CODES, TOKENISER
from fairseq_posenc.data.subwords import DICTIONARY, MASK, SentencePiece, WordPiece
from fairseq_posenc.guards import signatures
from fairseq_posenc.tools.export.hf_languages import LANGUAGES
from fairseq_posenc.tools.export.hf_layouts import Layout
from fairseq_posenc.tools.export.source import LANGUAGE_MODEL, ExportSource

TEXT_FILES = (CODES, TOKENISER, SentencePiece.name, WordPiece.name, LANGUAGES)
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

`posenc import --from FOLDER --output model.pt` makes the checkpoint again, weight by weight.
"""
_TRANSLATION = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
batch = tokenizer(["…"], return_tensors="pt", padding=True, return_token_type_ids=False)
{unknown}print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))"""
_MULTILINGUAL = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
tokenizer.src_lang = "{source}"
batch = tokenizer(["…"], return_tensors="pt", padding=True)
made = model.generate(**batch, forced_bos_token_id={number})  # {target}
print(tokenizer.batch_decode(made, skip_special_tokens=True))"""
_BERT = """from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForMaskedLM.from_pretrained("FOLDER")
scores = model(**tokenizer(["… <mask> …"], return_tensors="pt", padding=True)).logits"""

_LANGUAGE_MODEL = """from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForCausalLM.from_pretrained("FOLDER")
batch = tokenizer("…", return_tensors="pt", return_token_type_ids=False)
{unknown}print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))

# several texts at once: tokenizer([…], padding=True, padding_side="left", …)"""


def write(
    source: ExportSource,
    layout: Layout,
    dictionary: Dictionary,
    folder: str,
    notes: List[str],
    measured: Optional[str],
) -> None:
    """Write the model card; the ``dictionary`` is that of the target."""
    more: Dict[str, Any] = {}
    if source.is_multilingual:
        kind, tag, code = "Translation of many languages", "translation", _MULTILINGUAL
        first, second, *_ = source.task["langs"]
        number = dictionary.index(get_lang_tok(second, source.task["lang_tok_style"]))
        more = {"source": first, "target": second, "number": number}
    elif len(source.stacks) == 2:
        kind, tag, code = "Translation", "translation", _TRANSLATION
    elif source.kind == LANGUAGE_MODEL:
        kind, tag, code = "Language model", "text-generation", _LANGUAGE_MODEL
    else:
        kind, tag, code = "BERT", "fill-mask", _BERT
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    beyond = any("not in the dictionary" in note for note in notes)
    types = next(iter(source.stacks.values())).embed_tokens.num_embeddings
    unknown = f'batch["input_ids"][batch["input_ids"] >= {types}] = 3\n' if beyond else ""
    text = _CARD.format(
        tags=tag,
        title=f"{kind}, {' to '.join(map(str, languages))}" if languages[0] else kind,
        signature=signatures.of_checkpoint(source.state),
        model=layout.model,
        agreement=measured or "not measured (`--check` does)",
        notes="\n".join(f"- {note}" for note in notes),
        code=code.format(unknown=unknown, **more),
    )
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as stream:
        stream.write(text)


def copy_text_files(
    source: ExportSource, dictionaries: Mapping[str, Dictionary], data: str, folder: str
) -> None:
    """Write the dictionaries by fairseq's names, and copy what cuts text into subwords."""
    languages = [source.task.get("source_lang"), source.task.get("target_lang")]
    for dictionary, language in zip(dictionaries.values(), languages):
        shared = len(dictionaries) == 1 or source.is_multilingual
        name = DICTIONARY if shared else f"dict.{language}.txt"
        kept = Dictionary()
        for symbol, count in zip(dictionary.symbols, dictionary.count):
            if symbol != MASK or source.is_multilingual:  # the tasks of BERT add it
                kept.add_symbol(symbol, count)
        kept.save(os.path.join(folder, name))
    for name in TEXT_FILES:
        if os.path.isfile(os.path.join(data, name)):
            shutil.copy(os.path.join(data, name), folder)

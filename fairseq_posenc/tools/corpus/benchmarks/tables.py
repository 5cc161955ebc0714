"""GLUE and XNLI as tab-separated files, with the columns of the official downloads.

As there, nothing is quoted and quotation marks need not come in pairs; CoLA has no header; SST-2
has a blank before the tab; training examples of MNLI have one annotator, development examples five.
The columns of parses are empty, as they are in XNLI.
"""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

from fairseq_posenc.tools.corpus.benchmarks import sentences
from fairseq_posenc.tools.corpus.benchmarks.plan import File, Plan
from fairseq_posenc.tools.corpus.benchmarks.tongues import TONGUES
from fairseq_posenc.tools.corpus.benchmarks.unseen import Example, Maker, Unseen
from fairseq_posenc.tools.corpus.dice import Dice

_PARSES = "sentence1_binary_parse,sentence2_binary_parse,sentence1_parse,sentence2_parse"
_MNLI = f"index,promptID,pairID,genre,{_PARSES},sentence1,sentence2"
_VOTES = "label1,label2,label3,label4,label5"
_STS = "index,genre,filename,year,old_index,source1,source2,sentence1,sentence2"
_XNLI = (
    f"language,gold_label,{_PARSES},sentence1,sentence2,promptID,pairID,genre,{_VOTES},"
    "sentence1_tokenized,sentence2_tokenized,match"
)
_MATCHED = ("fiction", "government", "slate", "telephone", "travel")
_MISMATCHED = ("facetoface", "letters", "nineeleven", "oup", "verbatim")


class Task(NamedTuple):
    """A task of GLUE: its labels, what makes an example of a label, and the columns of its files.

    ``headed`` says whether training and development files name their columns; ``genres`` are for
    the column of that name.
    """

    name: str
    labels: Sequence[str]
    maker: Maker
    train: str
    dev: str
    test: str
    headed: bool = True
    genres: Sequence[str] = _MATCHED


_YES_NO = ("1", "0")
_TWO_WAY = (sentences.ENTAILMENT, sentences.OTHERWISE)
_THREE_WAY = (sentences.ENTAILMENT, sentences.NEUTRAL, sentences.CONTRADICTION)


def _task(
    name: str, labels: Sequence[str], maker: Maker, test: str, labelled: str, **more: Any
) -> Task:
    return Task(name, labels, maker, labelled, labelled, test, **more)


TASKS = (
    _task(
        "CoLA",
        _YES_NO,
        sentences.acceptability,
        "index,sentence",
        "source,label,mark,sentence",
        headed=False,
    ),
    _task("SST-2", _YES_NO, sentences.sentiment, "index,sentence", "sentence,label"),
    _task(
        "MRPC",
        _YES_NO,
        sentences.paraphrase,
        "index,#1 ID,#2 ID,#1 String,#2 String",
        "Quality,#1 ID,#2 ID,#1 String,#2 String",
    ),
    _task(
        "QQP",
        _YES_NO,
        sentences.same_question,
        "id,question1,question2",
        "id,qid1,qid2,question1,question2,is_duplicate",
    ),
    _task(
        "STS-B",
        "543210",
        sentences.similarity,
        _STS,
        f"{_STS},score",
        genres=("main-captions",),
    ),
    Task(
        "MNLI",
        _THREE_WAY,
        sentences.inference,
        f"{_MNLI},label1,gold_label",
        f"{_MNLI},{_VOTES},gold_label",
        _MNLI,
    ),
    _task(
        "QNLI",
        _TWO_WAY,
        sentences.answered_question,
        "index,question,sentence",
        "index,question,sentence,label",
    ),
    _task(
        "RTE",
        _TWO_WAY,
        sentences.two_way_inference,
        "index,sentence1,sentence2",
        "index,sentence1,sentence2,label",
    ),
    _task(
        "WNLI",
        _YES_NO,
        sentences.referent,
        "index,sentence1,sentence2",
        "index,sentence1,sentence2,label",
    ),
)

Cell = Callable[["Row"], str]


class Row(NamedTuple):
    """What the cells of a row are made from; ``votes`` are the labels of five annotators."""

    number: int
    example: Example
    votes: Sequence[str]
    genre: str
    language: str = "en"


def _constant(text: str) -> Cell:
    return lambda row: text


def _numbered(step: int, more: int) -> Cell:
    return lambda row: str(step * row.number + more)


def _text(place: int) -> Cell:
    return lambda row: row.example.texts[place]


def _vote(place: int) -> Cell:
    return lambda row: row.votes[place]


def _tokens(place: int) -> Cell:
    return lambda row: _tokenised(row, place)


def _tokenised(row: Row, place: int) -> str:
    tongue = TONGUES[row.language]
    text, spans = tongue.spell(tongue.sentence(row.example.scenes[place]))
    return " ".join(text[start:end] for start, end in spans).strip()


def _named(cell: Cell, *columns: str) -> Dict[str, Cell]:
    return dict.fromkeys(columns, cell)


_CELLS: Dict[str, Cell] = {
    **_named(_numbered(1, 0), "index", "id", "promptID"),
    **_named(lambda row: f"{row.number}{row.example.label[:1]}", "pairID"),
    **_named(_numbered(2, 1), "qid1", "#1 ID"),
    **_named(_numbered(2, 2), "qid2", "#2 ID"),
    **_named(_text(0), "sentence1", "question1", "question", "#1 String"),
    **_named(_text(1), "sentence2", "question2", "#2 String"),
    **_named(_text(-1), "sentence"),
    **_named(lambda row: row.example.label, "label", "Quality", "is_duplicate", "score"),
    **_named(lambda row: row.example.label, "gold_label"),
    **{f"label{number}": _vote(number - 1) for number in range(1, 6)},
    **_named(lambda row: "" if row.example.label == "1" else "*", "mark"),
    **_named(_constant(""), *_PARSES.split(",")),
    **_named(lambda row: row.genre, "genre"),
    **_named(lambda row: row.language, "language"),
    **_named(_constant("none"), "source1", "source2"),
    **_named(_constant("gram"), "source"),
    **_named(_constant("grammar"), "filename"),
    **_named(_constant("2012"), "year"),
    **_named(lambda row: f"{row.number:04}", "old_index"),
    **_named(_constant("True"), "match"),
    **_named(_tokens(0), "sentence1_tokenized"),
    **_named(_tokens(1), "sentence2_tokenized"),
}


def glue_and_xnli(plan: Plan) -> Iterator[File]:
    """Yield every file of GLUE, and XNLI's two.

    Raises:
        UsageError: there are not so many examples.
    """
    for task in TASKS:
        unseen = Unseen()
        if task.name == "MNLI":
            yield from _xnli(task, unseen, plan)
        yield from _glue(task, unseen, plan)


def _glue(task: Task, unseen: Unseen, plan: Plan) -> Iterator[File]:
    suffixes = ("_matched", "_mismatched") if task.name == "MNLI" else ("",)
    held_out = [f"{split}{suffix}" for split in ("dev", "test") for suffix in suffixes]
    # training comes last and leaves alone what the others hold
    for split in (*held_out, "train"):
        seed = f"{plan.seed}/{task.name}/{split}"
        number = plan.examples if split == "train" else plan.held_out
        examples = unseen.split(task.maker, task.labels, number, seed)
        lines = _lines(task, split, examples, Dice(f"{seed}/rows"))
        yield f"glue/{task.name}/{split}.tsv", lines


def _lines(task: Task, split: str, examples: Sequence[Example], dice: Dice) -> List[str]:
    kind, _, part = split.partition("_")
    columns = {"train": task.train, "dev": task.dev, "test": task.test}[kind].split(",")
    genres = _MISMATCHED if part == "mismatched" else task.genres
    lines = ["\t".join(columns)] if task.headed or kind == "test" else []
    for at, example in enumerate(examples):
        said, votes = _smudged(task, example, dice), _votes(task.labels, example, dice)
        lines.append(_line(columns, Row(at, said, votes, dice.pick(genres))))
    return lines


def _xnli(task: Task, unseen: Unseen, plan: Plan) -> Iterator[File]:
    columns = _XNLI.split(",")
    for split in ("dev", "test"):
        seed = f"{plan.seed}/XNLI/{split}"
        examples = unseen.split(task.maker, task.labels, plan.held_out, seed)
        lines = ["\t".join(columns)]
        for language, tongue in TONGUES.items():
            dice = Dice(f"{seed}/rows")
            for at, example in enumerate(examples):
                said = example._replace(texts=[tongue.text(scene) for scene in example.scenes])
                votes, genre = _votes(task.labels, example, dice), dice.pick(_MATCHED + _MISMATCHED)
                lines.append(_line(columns, Row(at, said, votes, genre, language)))
        yield f"xnli/xnli.{split}.tsv", lines


def _line(columns: Sequence[str], row: Row) -> str:
    return "\t".join(_CELLS[column](row) for column in columns)


def _votes(labels: Sequence[str], example: Example, dice: Dice) -> List[str]:
    """Return five labels, of which at most two are not the example's."""
    dissent = [dice.pick(labels) if dice.chance(0.2) else example.label for _ in range(2)]
    return [example.label, *dissent, example.label, example.label]


def _smudged(task: Task, example: Example, dice: Dice) -> Example:
    """Open a quotation in some texts that never closes; end those of SST-2 with a blank."""
    texts = []
    for text in example.texts:
        words = text.split(" ")
        if dice.chance(0.08):
            place = dice.between(0, len(words) - 1)
            words[place] = f'"{words[place]}'
        texts.append(" ".join(words) + (" " if task.name == "SST-2" else ""))
    return example._replace(texts=texts)

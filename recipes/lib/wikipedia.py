"""The files of a language in the snapshot wikimedia/wikipedia 20231101, from the hub's list.

That is the answer of https://huggingface.co/api/datasets/wikimedia/wikipedia/tree/main/20231101.en,
or another language in place of en.
"""

import re
from typing import List, Tuple

from fairseq_posenc.errors import UsageError
from fairseq_posenc.json_files import read_json, schema_error


def files_of(path: str) -> List[Tuple[str, str, int]]:
    """Return path, SHA-256 and size of the parquet files of a list.

    Raises:
        UsageError: the file is not such a list, or one of the snapshot's files is missing in it.
    """
    shape = [{"path": str, "size": int, "lfs": {"oid": str}}]
    value = read_json(path)
    files = value if isinstance(value, list) else []
    files = [file for file in files if ".parquet" in str(file)]
    wrong = schema_error(files, shape)
    names = [re.fullmatch(r"\d{8}\.[\w-]+/train-(\d{5})-of-(\d{5})\.parquet", file["path"])
             for file in files if not wrong]  # fmt: skip
    numbers = [(int(name[1]), int(name[2])) for name in names if name]
    if not files or wrong or sorted(numbers) != [(n, len(files)) for n in range(len(files))]:
        raise UsageError(
            f"{path} is not the hub's list of a language's files: remove it and start again"
        )
    return [(file["path"], file["lfs"]["oid"], file["size"]) for file in files]

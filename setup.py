"""Package metadata; scripts/setup.sh makes a whole environment, fairseq included."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
VERSION = re.search(
    r'^__version__ = "(.+)"$',
    (ROOT / "fairseq_posenc" / "version.py").read_text(encoding="utf-8"),
    re.MULTILINE,
).group(1)
README = ROOT / "README.md"

setup(
    name="fairseq_posenc",
    version=VERSION,
    description="Position encodings for fairseq: a plugin for translation and BERT-like models",
    long_description=README.read_text(encoding="utf-8") if README.is_file() else "",
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["fairseq_posenc", "fairseq_posenc.*"]),
    package_data={
        "fairseq_posenc.tools.tables": ["papers/*.json", "report.html.jinja"],
        "fairseq_posenc.tools.benchmark": ["papers/*.json"],
    },
    entry_points={"console_scripts": ["posenc = fairseq_posenc.tools.cli:main"]},
    # of these on, tarfile unpacks safely
    python_requires=">=3.10.12, !=3.11.0, !=3.11.1, !=3.11.2, !=3.11.3",
    # fairseq is an extra, so that installing the plugin never replaces the one that is there
    install_requires=["torch>=2.10"],
    extras_require={
        "fairseq": [
            "fairseq-fixed==0.12.3.1; python_version >= '3.11'",
            "fairseq==0.12.2; python_version < '3.11'",
        ],
        "tools": [
            "jinja2>=3",
            "langcodes>=3.5",
            "matplotlib",
            "pyarrow>=14",
            # private functions of it are called
            "sacrebleu>=2.2,<3",
            "sacremoses",
            "safetensors>=0.4",
            "scikit-learn",
            "scipy",
            # older ones may crash at a model that was made for it
            "sentencepiece>=0.2.2",
            "subword-nmt>=0.3.8",
            "tokenizers>=0.13",
            "tqdm",
        ],
        "export": ["ctranslate2>=4.8"],
        "test": [
            "ctranslate2>=4.8",
            "mypy",
            "pytest",
            "pytest-cov",
            "pytest-xdist",
            "ruff",
            # it needs a newer torch than 3.10 has
            "transformers>=5.23; python_version >= '3.11'",
        ],
    },
)

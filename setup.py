"""All metadata is in pyproject.toml. scripts/setup.sh makes a whole environment with fairseq."""

from setuptools import setup

setup()

"""``python -m fairseq_posenc.tools``: the command ``posenc``."""

from fairseq_posenc.tools.cli import main

main()

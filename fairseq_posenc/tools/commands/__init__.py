"""The sub-commands of ``posenc``, a module each with ``main``."""

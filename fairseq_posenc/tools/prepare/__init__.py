"""From raw text and downloads to binarised folders: ``posenc prepare``."""

"""The papers' analyses of trained models: one file each, all run by ``posenc analyse``."""

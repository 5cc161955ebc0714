"""The version of the plugin, also part of every signature."""

__version__ = "0.1.0"

"""The toolbox: the command ``posenc``. It imports the plugin, never the other way round."""

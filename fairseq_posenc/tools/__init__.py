"""The toolbox: the command ``posenc``. It imports the plugin, never the other way round."""

from fairseq_posenc.errors import print_errors_in_one_line

print_errors_in_one_line()

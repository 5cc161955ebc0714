"""Run a recipe: its kind, the arrays of its script, and the user's arguments; see
recipes/lib/recipe.sh.
"""

import importlib
import os
import sys

from fairseq_posenc.errors import UsageError
from recipes.lib.config import read_script
from recipes.lib.processes import end_on_signals, exit_status

KINDS = {
    **{name: f"recipes.lib.{name}" for name in
       ("language_model", "wmt", "pretrain", "finetune", "anchors")},
    "translation": "recipes.lib.texts",
    "claims": "recipes.claims.parts",
    "bert_probes": "recipes.claims.bert_probes",
}  # fmt: skip


def main() -> int:
    """Run it, and return the exit status; what the user can mend is told in one line."""
    end_on_signals()
    script, arguments = read_script(sys.argv[1:])
    try:
        if script.recipe_kind not in KINDS:
            raise UsageError(f"no kind of recipe is called {script.recipe_kind}")
        importlib.import_module(KINDS[script.recipe_kind]).main(script, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # … --help | head, --plan | head: nobody reads on, nor what Python prints at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, OSError, KeyboardInterrupt) as error:
        status = exit_status()  # of a signal that may have made a program fail
        ending = "interrupted; start again to go on" if status else f"error: {error}"
        print(f"{os.path.basename(script.path)}: {ending}", file=sys.stderr, flush=True)
        return status or 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

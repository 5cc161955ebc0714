"""Run a recipe: its kind, the arrays of its page, and the user's arguments; see
recipes/lib/recipe.sh.
"""

import importlib
import os
import sys

from fairseq_posenc.errors import UsageError
from recipes.lib.page import read_page
from recipes.lib.processes import end_on_signals, exit_status

KINDS = {
    **{name: f"recipes.lib.{name}" for name in
       ("translation", "language_model", "wmt", "pretrain", "finetune", "anchors")},
    "claims": "recipes.claims.parts",
    "bert_probes": "recipes.claims.bert_probes",
}  # fmt: skip


def main() -> int:
    """Run it, and return the exit status; what the user can mend is told in one line."""
    end_on_signals()
    page, arguments = read_page(sys.argv[1:])
    try:
        if page.recipe_kind not in KINDS:
            raise UsageError(f"no kind of recipe is called {page.recipe_kind}")
        importlib.import_module(KINDS[page.recipe_kind]).main(page, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # … --help | head, --plan | head: nobody reads on, nor what Python prints at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        print(f"{os.path.basename(page.script)}: error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print(
            f"{os.path.basename(page.script)}: interrupted; start again to go on", file=sys.stderr
        )
        return exit_status()
    return 0


if __name__ == "__main__":
    sys.exit(main())

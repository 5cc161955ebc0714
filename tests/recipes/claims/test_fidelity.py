"""docs/fidelity.md has all that the recipes' command lines have."""

import json

import pytest

from fairseq_posenc.errors import UsageError
from recipes.claims import fidelity


def test_the_page_is_what_the_recipes_do_today():
    assert fidelity.PAGE.read_text(encoding="utf-8") == fidelity.page()


@pytest.mark.parametrize("option", ["--new-option", "--lr"])
@pytest.mark.parametrize("plan", ["recipes/cape/run.sh", "recipes/xtreme/run.sh --rows all"])
def test_a_setting_on_one_side_only_is_reported(monkeypatch, tmp_path, plan, option):
    content = json.loads(fidelity.SOURCE.read_text(encoding="utf-8"))
    (section,) = [one for one in content["sections"] if one["plan"] == plan]
    monkeypatch.setattr(fidelity, "SOURCE", tmp_path / "fidelity.json")
    fidelity.SOURCE.write_text(json.dumps({**content, "sections": [section]}))
    found = fidelity.read_plan(plan)
    if found.pop(f"train {option}", None) is None:
        found[f"train {option}"] = {"1": {("de6", "cape_5")}}
    monkeypatch.setattr(fidelity, "read_plan", lambda recipe: found)
    with pytest.raises(UsageError, match=rf"{plan}: differ in \['train {option}'\]$"):
        fidelity.page()


def test_a_value_says_where_it_is_unless_it_is_everywhere():
    cells = {("a", "x"), ("a", "y"), ("b", "x")}
    found = {"train --all": {"1": cells}, "train --some": {"yes": {("a", "x"), ("b", "x")}},
             "train --other": {"2": {("a", "x"), ("a", "y")}, "3": {("b", "x")}}}  # fmt: skip
    shown = [fidelity.values_of(f"train --{name}", found) for name in ("all", "some", "other")]
    assert shown == ["1", "--some (x)", "2 (a); 3 (b)"]

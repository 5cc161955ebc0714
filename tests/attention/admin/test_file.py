"""Profiles: what is read, and what is refused in one line."""

import json

import pytest

from fairseq_posenc.attention import admin
from fairseq_posenc.errors import UsageError


@pytest.fixture
def read(tmp_path, shape):
    """A function that reads a profile from a file as a model with two layers would."""

    def read(content, **options):
        (tmp_path / "admin.json").write_text(
            content if isinstance(content, str) else json.dumps(content)
        )
        return admin.load_profile(shape(admin_profile=str(tmp_path / "admin.json"), **options))

    return read


def test_what_is_read_is_kept_in_one_line_and_read_again_alike(read, profile, shape):
    found = profile()
    kept = read({**found, "variances": {"encoder": []}})
    assert "\n" not in kept and json.loads(kept) == found
    assert admin.load_profile(shape(admin_profile=kept)) == kept


def test_a_profile_of_ones_has_all_sub_layers(shape):
    found = json.loads(admin.unit_profile(shape(encoder_layers=3, decoder_layers=4)))["omegas"]
    assert found["encoder"] == [dict.fromkeys(admin.ENCODER_RATIOS, 1.0)] * 3
    assert found["decoder"] == [dict.fromkeys(admin.DECODER_RATIOS, 1.0)] * 4


@pytest.mark.parametrize(
    "path, value, words",
    [
        (["version"], 2, "version 2 is not known, only 1"),
        (["version"], None, "version None is not known"),
        (["channels", "encoder"], 512, "made for channels {'encoder': 512"),
        (["omegas"], [1, 2], "not an ADMIN profile"),
        (["omegas", "decoder"], {}, "it has no decoder layers, the model 2"),
        (["omegas", "encoder", 1], [1.0, 1.0], "encoder layer 1 should have attention_ratio"),
        (["omegas", "encoder", 1], {"fc_ratio_change": 1.0}, "encoder layer 1 should have"),
        (["omegas", "decoder", 0, "more"], 1.0, "decoder layer 0 should have self_ratio_change"),
        (["omegas", "decoder", 0, "fc_ratio_change"], 0, "is not a positive number: 0"),
        (["omegas", "decoder", 0, "fc_ratio_change"], -1.5, "fc_ratio_change of decoder layer 0"),
        (["omegas", "decoder", 0, "fc_ratio_change"], float("nan"), "not a positive number: nan"),
        (["omegas", "decoder", 0, "fc_ratio_change"], float("inf"), "not a positive number: inf"),
        (["omegas", "decoder", 0, "fc_ratio_change"], 10**400, "is not a positive number: 1000"),
        (["omegas", "decoder", 0, "fc_ratio_change"], "2", "is not a positive number: '2'"),
        (["omegas", "decoder", 0, "fc_ratio_change"], True, "is not a positive number: True"),
    ],
)
def test_a_bad_profile_is_refused_in_one_line(read, profile, path, value, words):
    found = part = profile()
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(UsageError) as error:
        read(found)
    assert words in str(error.value)
    assert "admin.json" in str(error.value)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "null", '"text"', "[" * 10**5, "{}"])
def test_what_is_no_profile_is_refused_in_one_line(read, content):
    with pytest.raises(UsageError, match="admin.json"):
        read(content)


def test_a_profile_of_a_deeper_model_is_refused(read, profile):
    with pytest.raises(UsageError, match="it has 3 encoder layers, the model 2"):
        read(profile(encoder_layers=3))
    with pytest.raises(UsageError, match="it has 2 decoder layers, the model 18"):
        read(profile(), decoder_layers=18)
    with pytest.raises(UsageError, match="decoder layer 0 should have self_ratio_change, fc_rat"):
        read(profile(), no_cross_attention=True)


def test_a_missing_file_is_said(shape, tmp_path):
    with pytest.raises(UsageError, match="cannot read .*none.json"):
        admin.load_profile(shape(admin_profile=str(tmp_path / "none.json")))


@pytest.mark.parametrize(
    "flag", ["encoder_normalize_before", "decoder_normalize_before", "cross_self_attention"]
)
def test_models_that_admin_is_not_for_are_refused(build_admin, read, shape, profile, flag):
    words = "ADMIN does not go with .*--" + flag.replace("_", "-")
    for refused in (
        lambda: read(profile(), **{flag: True}),
        lambda: admin.unit_profile(shape(**{flag: True})),
        lambda: build_admin(**{flag: True}),
    ):
        with pytest.raises(UsageError, match=words):
            refused()

"""Archives and addresses in place of folders, which fairseq would unpack, fetch and delete."""

from pathlib import Path

import pytest
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerModel

from fairseq_posenc.errors import UsageError
from fairseq_posenc.models.bert import PosencBertModel
from fairseq_posenc.models.transformer import PosencTransformerModel

HUBS = [PosencTransformerModel, PosencBertModel, TransformerModel, RobertaModel]


@pytest.fixture
def archive(make_archive, tmp_path):
    """An archive of a model, with a file that leaves the folder it is unpacked into."""
    members = {"top/model.pt": b"no model", "top/../../escaped": b"x", "top/dict.txt": ["a 1"]}
    return make_archive(tmp_path / "model.tar.gz", members)


@pytest.mark.parametrize("hub", HUBS, ids=lambda hub: hub.__name__)
def test_an_archive_is_neither_unpacked_nor_deleted(
    hub, archive, translation, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary" / "inner"))
    Path(tmp_path / "temporary" / "inner").mkdir(parents=True)
    translation.save()
    content = Path(archive).read_bytes()
    for model, data in ((archive, "."), (translation.folder, archive)):
        with pytest.raises(UsageError, match="unpack it first.*tar -xf .*model.tar.gz"):
            hub.from_pretrained(model, data_name_or_path=data)
    assert Path(archive).read_bytes() == content
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert found == {"model.tar.gz", "temporary", "temporary/inner"}


@pytest.mark.parametrize("hub", HUBS, ids=lambda hub: hub.__name__)
@pytest.mark.parametrize("address", ["https://example.org/x.tgz", "s3://x/y.tar.gz"])
def test_an_address_is_not_fetched(hub, address, translation, monkeypatch):
    def fetch(*_, **__):
        raise AssertionError("the address was asked for")

    monkeypatch.setattr("fairseq.file_utils.get_from_cache", fetch)
    translation.save()
    for model, data in ((address, "."), (translation.folder, address)):
        with pytest.raises(
            UsageError, match=f"unpack it first.*posenc prepare download .*{address}"
        ):
            hub.from_pretrained(model, data_name_or_path=data)

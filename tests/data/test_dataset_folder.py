"""Data sets in folders: what `save_to_disk` writes, and tables named after splits."""

import json

import pytest

from regard.data.reading.dataset_folder import dataset_files
from tests.refusals import refused


def save(folder, n_files=1, split=None):
    """A folder like those that `save_to_disk` writes; the files are empty."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{n_files:05}.arrow" for i in range(n_files)]
    for name in names:
        (folder / name).touch()
    state = {"_data_files": [{"filename": name} for name in names], "_split": split}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return [folder / name for name in names]


def test_a_data_set_with_splits_gives_each_its_files(tmp_path):
    files = {
        name: tuple(save(tmp_path / name, n)) for name, n in (("train", 3), ("validation", 1), ("extra", 2))
    }
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": list(files)}))
    assert dataset_files(tmp_path) == {"train": files["train"], "valid": files["validation"]}
    assert dataset_files(tmp_path / "extra") == {"train": files["extra"]}


def test_one_split_is_known_by_its_name(tmp_path):
    (file,) = save(tmp_path / "x", split="test")
    assert dataset_files(tmp_path / "x") == {"test": (file,)}


@pytest.mark.parametrize(
    ("names", "sets"),
    [
        (
            ["data/train-00001-of-00002.parquet", "data/train-00000-of-00002.parquet", "data/test-1.parquet"],
            {
                "train": ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"],
                "test": ["data/test-1.parquet"],
            },
        ),
        (
            ["train.csv", "dev.csv", "README.md", ".cache/train.csv"],
            {"train": ["train.csv"], "valid": ["dev.csv"]},
        ),
        (
            ["sst2/train/0000.parquet", "sst2/validation/0000.parquet"],
            {"train": ["sst2/train/0000.parquet"], "valid": ["sst2/validation/0000.parquet"]},
        ),
        (["trained.csv", "notes.tsv", "train.txt"], None),
        ([], None),
    ],
)
def test_tables_are_known_by_the_names_of_splits(tmp_path, names, sets):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    expected = sets and {name: tuple(tmp_path / file for file in files) for name, files in sets.items()}
    assert dataset_files(tmp_path) == expected


def test_a_folder_of_several_data_sets_is_refused_with_their_names(tmp_path):
    for name in ("cola", "sst2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train-0.parquet").touch()
    with refused("several_datasets", f"{tmp_path}: ", "cola", "sst2"):
        dataset_files(tmp_path)
    assert dataset_files(tmp_path / "sst2") == {"train": (tmp_path / "sst2" / "train-0.parquet",)}


def test_a_data_set_without_a_known_split_is_refused(tmp_path):
    save(tmp_path / "unsupervised")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["unsupervised"]}')
    with refused("missing_split", f"{tmp_path}: ", "unsupervised"):
        dataset_files(tmp_path)


@pytest.mark.parametrize("name", ["state.json", "dataset_dict.json"])
@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_description_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with refused("damaged_file", name):
        dataset_files(tmp_path)

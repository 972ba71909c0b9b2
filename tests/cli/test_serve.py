"""`regard serve`: what it refuses before it listens, and the keys that it makes."""

import json
import socket

import pytest

from regard.cli import main


def said(capsys, *words):
    """Exit status and what was printed."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", *map(str, words)])
    return ended.value.code or 0, *capsys.readouterr()


def test_a_folder_that_is_not_there_is_refused(capsys, tmp_path):
    status, _, err = said(capsys, tmp_path / "nothing", "--port", 0)
    assert status == 2
    assert "there is no such folder" in err


def test_an_open_door_must_be_asked_for(capsys, talker):
    status, _, err = said(capsys, talker, "--host", "0.0.0.0", "--port", 0)
    assert status == 2
    assert "error[open_server]" in err
    assert "--keys" in err
    assert "--open" in err


def test_a_port_that_is_taken(capsys, talker):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, err = said(capsys, talker, "--port", port)
    assert status == 2
    assert f"127.0.0.1:{port}" in err
    assert "error[address_unavailable]" in err


def test_two_models_of_one_name(capsys, talker):
    status, _, err = said(capsys, talker, talker, "--port", 0)
    assert status == 2
    assert "error[duplicate_model]" in err
    assert "'trained'" in err


def test_a_folder_that_is_no_model(capsys, tmp_path):
    status, _, err = said(capsys, tmp_path, "--port", 0)
    assert status == 2
    assert "is not a model folder" in err


def test_a_key_is_made_and_printed_once(capsys, tmp_path):
    file = tmp_path / "keys"
    status, out, _ = said(capsys, "--new-key", "phone", "--keys", file)
    assert status == 0
    line = json.loads(file.read_text())
    assert line["name"] == "phone"
    assert out.strip()
    assert out.strip() not in file.read_text()
    status, _, err = said(capsys, "--new-key", "phone")
    assert (status, "--keys FILE" in err) == (2, True)

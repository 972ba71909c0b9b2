"""A corpus through a real Ray cluster: in order, nothing lost, nothing twice, as without Ray."""

import io
import json
import lzma
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import regard
from regard.cli import main
from regard.cli.shared.reporting import LineReporter
from regard.errors import BundleError, ConfigError, CorpusError, RequestError
from regard.scale import translate
from regard.scale.corpus import CorpusRun, lines_of
from regard.scale.shipping import packed
from regard.scale.workers import WorkerPool, WorkerSettings, cut
from tests.refusals import refused
from tests.scale.deadly import EXACT, Deadly, Outdated, Unstartable, Waiting, Watched

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cluster"), pytest.mark.xdist_group("ray")]

SHARD = 7


@pytest.fixture(scope="module")
def corpus(folder, sources):
    """A file of 61 lines: nine shards."""
    path = folder / "corpus.zh"
    path.write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected(talker, corpus):
    """What `regard translate` makes of it without Ray."""
    write = WorkerSettings(quantisation=EXACT).portable().writer([talker])
    return [each.text for block in lines_of([corpus]) for each in write(block)]


def lines(path):
    return path.read_bytes().decode().split("\n")[:-1]


def begun(folder):
    return lines(folder / "begun")


def test_several_files_packed_or_not_become_one_in_order(talker, corpus, expected, tmp_path):
    nasty = "三月\r\n\n  \n".encode() + b"ab\xff\n" + "四月\u2028五月".encode()
    (tmp_path / "nasty.xz").write_bytes(lzma.compress(nasty))
    settings = WorkerSettings(quantisation=EXACT)
    found = translate(
        [corpus, tmp_path / "nasty.xz"],
        tmp_path / "out",
        model=talker,
        workers=2,
        shard_lines=SHARD,
        settings=settings,
    )
    write = settings.portable().writer([talker])
    alone = [each.text for block in lines_of([tmp_path / "nasty.xz"]) for each in write(block)]
    assert lines(tmp_path / "out") == expected + alone
    assert alone[1:4] == ["", "  ", ""]
    assert (found.n_lines, found.n_unreadable, found.out) == (66, 1, tmp_path / "out")


def test_a_worker_that_is_killed_is_replaced(talker, corpus, sources, expected, tmp_path):
    settings = Waiting(quantisation=EXACT, folder=tmp_path, line=sources[3 * SHARD + 2])

    def kill():
        until = time.monotonic() + 60
        while not (tmp_path / "pid").exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    translate(corpus, tmp_path / "out", model=talker, workers=2, shard_lines=SHARD, settings=settings)
    killer.join()
    assert lines(tmp_path / "out") == expected
    twice = sources[3 * SHARD]
    assert sorted(begun(tmp_path)) == sorted([*sources[::SHARD], twice])


def test_a_shard_that_kills_three_workers_is_named_and_nothing_else_is_lost(
    talker, corpus, sources, expected, tmp_path
):
    out, shards = tmp_path / "out", tmp_path / "shards"
    settings = Deadly(quantisation=EXACT, folder=tmp_path, line=sources[2 * SHARD + 3])
    arguments = {"model": talker, "workers": 2, "shards": shards, "shard_lines": SHARD}
    with refused("worker_died", "corpus.zh:15-21", f"--shards {shards}", error=CorpusError):
        translate(corpus, out, settings=settings, **arguments)
    assert not out.exists()
    assert begun(tmp_path).count(sources[2 * SHARD]) == 3
    assert len(begun(tmp_path)) == 9 + 2

    (tmp_path / "begun").unlink()
    translate(corpus, out, settings=Watched(quantisation=EXACT, folder=tmp_path), **arguments)
    assert begun(tmp_path) == [sources[2 * SHARD]]
    assert lines(out) == expected


def test_a_run_that_was_cut_goes_on_where_it_stopped(talker, corpus, sources, expected, tmp_path):
    settings = Watched(quantisation=EXACT, folder=tmp_path)
    arguments = {"workers": 1, "shards": tmp_path / "shards"}
    first = CorpusRun([talker], settings, **arguments).written(lines_of([corpus]), SHARD)
    assert [each.text for each in next(first)] == expected[:SHARD]
    first.close()
    done = {path.name[:8] for path in (tmp_path / "shards").glob("0*.jsonl")}
    assert 1 <= len(done) < 9

    (tmp_path / "begun").unlink()
    again = CorpusRun([talker], settings, **arguments).written(lines_of([corpus]), SHARD)
    assert [each.text for block in again for each in block] == expected
    # A worker that is killed may begin one more shard before it dies, which the next run begins, too.
    assert list(dict.fromkeys(begun(tmp_path))) == [
        text for i, text in enumerate(sources[::SHARD], start=1) if f"{i:08}" not in done
    ]


def test_lines_that_changed_are_translated_anew(talker, sources, tmp_path):
    settings = Watched(quantisation=EXACT, folder=tmp_path)
    file, arguments = tmp_path / "zh", {"model": talker, "workers": 1, "shards": tmp_path / "shards"}
    for changed in ("三月", "四月"):
        file.write_text("\n".join([*sources[:3], changed]), encoding="utf-8")
        translate(file, tmp_path / "out", shard_lines=2, settings=settings, **arguments)
    assert begun(tmp_path) == [sources[0], sources[2], sources[2]]


def test_the_command_prints_what_it_prints_without_ray(talker, corpus, monkeypatch, capsys):
    def printed(*words, packed=bytes):
        raw = packed(corpus.read_bytes() + b"\xff\n")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        with pytest.raises(SystemExit) as ended:
            main(["translate", "--model", str(talker), "--engine", "torch", "--json", "--scores", *words])
        return ended.value.code, *capsys.readouterr()

    status, out, err = printed("--ray", "auto", "--workers", "2", packed=lzma.compress)
    assert (status, out, err) == printed()
    assert status == 2
    assert "standard input:62: byte 1 (0xff)" in err
    assert json.loads(out.split("\n")[61])["error"]


def test_an_interrupted_command_names_the_folder_to_continue_from(talker, corpus, monkeypatch, capsys):
    def type_it(*words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(corpus.read_bytes())))
        with pytest.raises(SystemExit) as ended:
            main(["translate", "--model", str(talker), "--engine", "torch", *words])
        return ended.value.code or 0, *capsys.readouterr()

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LineReporter, "advance", interrupt)
        status, _, err = type_it("--ray", "auto", "--workers", "1")
    assert status == 130
    (message,) = [line for line in err.splitlines() if "--shards" in line]
    shards = Path(message.split("--shards ")[1].split()[0])
    assert len(list(shards.iterdir())) == 2
    try:
        again = type_it("--ray", "auto", "--shards", str(shards))
    finally:
        shutil.rmtree(shards)
    assert again == type_it()


def test_a_model_that_other_machines_do_not_see_goes_along(cluster, talker, sources, expected, tmp_path):
    elsewhere = talker.rename(talker.with_name("for-now"))
    try:
        parcel = packed(elsewhere, cluster)._replace(path=talker)
        settings = WorkerSettings(quantisation=EXACT).portable()
        blocks = lines_of([tmp_path / "zh"])
        (tmp_path / "zh").write_text("\n".join(sources[:SHARD]), encoding="utf-8")
        ((_, written),) = WorkerPool(settings, [parcel], 1).translated(cut(blocks))
        pool = WorkerPool(settings, [parcel._replace(files=None)], 1)
        with refused("changed_model", str(talker), error=BundleError):
            list(pool.translated(cut(lines_of([tmp_path / "zh"]))))
    finally:
        elsewhere.rename(talker)
    assert [each.text for each in written] == expected[:SHARD]


def test_what_a_worker_refuses_is_said_as_without_ray(talker, corpus, tmp_path):
    settings = WorkerSettings(options={"sample": True}, engine="ctranslate2")
    with pytest.raises(RequestError) as alone:
        settings.portable().writer([talker])(next(lines_of([corpus])))
    with refused(alone.value.code, str(alone.value), error=RequestError):
        translate(corpus, tmp_path / "out", model=talker, workers=1, settings=settings)


@pytest.mark.parametrize(
    ("settings", "code", "version"),
    [
        (Unstartable(), "worker_died", f"regard {regard.__version__} must be installed"),
        (Outdated(), "version_mismatch", "regard 0.0.1"),
    ],
)
def test_machines_without_this_version_of_regard_are_refused(
    talker, corpus, tmp_path, settings, code, version
):
    with refused(code, version, error=ConfigError):
        translate(corpus, tmp_path / "out", model=talker, workers=1, settings=settings)


def test_more_workers_than_there_is_room_for_are_refused(talker, corpus, tmp_path):
    with refused("no_room", "5 workers", "4 cores", error=ConfigError):
        translate(corpus, tmp_path / "out", model=talker, workers=5)

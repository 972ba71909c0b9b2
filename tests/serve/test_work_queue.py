"""Who goes next, and with whom."""

from regard.engine.engines.protocol import Request, Search
from regard.serve.http.errors import client_gone
from regard.serve.work.items import DecodeItem, ScoreItem
from regard.serve.work.jobs import RequestJob
from regard.serve.work.scheduler import WorkQueue

SEARCH = Search(beam_size=2)


def items(*lengths, search=SEARCH):
    return [DecodeItem(Request(ids=(7,) * (length - 1)), search, 100) for length in lengths]


def put(waiting, *lengths, now=0.0, search=SEARCH, job=None):
    job = job or RequestJob()
    found = items(*lengths, search=search)
    waiting.put(job, found, job.expect(len(found)), now)
    return job


def taken(waiting, room=1000):
    return [queued.item.length for queued in waiting.take(waiting.first(), room)]


def test_whoever_came_first_goes_first():
    waiting = WorkQueue()
    put(waiting, 11, now=2.0)
    put(waiting, 70, now=1.0)
    assert waiting.first().item.length == 70


def test_a_document_does_not_stand_in_the_way_of_a_sentence():
    waiting = WorkQueue()
    put(waiting, *[30] * 1000, now=0.0)
    put(waiting, 31, now=0.5)
    first = [queued.item.length for queued in waiting.take(waiting.first(), 32 * 20)]
    second = [queued.item.length for queued in waiting.take(waiting.first(), 32 * 20)]
    assert 31 in first + second


def test_nobody_is_overtaken_for_ever():
    waiting = WorkQueue()
    document = put(waiting, *[30] * 100, now=0.0)
    for second in range(1, 100):
        put(waiting, 30, now=float(second))
    rounds = 0
    while any(queued.job is document for queued in waiting.take(waiting.first(), 60)):
        rounds += 1
    assert rounds >= 10  # two at a time: the document gets on while sentences keep coming


def test_like_lengths_go_together():
    waiting = WorkQueue()
    put(waiting, 20, 100, 21, 8, 22, 90)
    assert sorted(taken(waiting, room=70)) == [20, 21, 22]


def test_a_batch_has_no_more_than_there_is_room_for():
    waiting = WorkQueue()
    put(waiting, *[10] * 50)
    assert len(taken(waiting, room=95)) == 9
    assert taken(waiting, room=5) == [10]  # one goes however long it is


def test_a_batch_that_is_not_full_takes_other_lengths_too():
    waiting = WorkQueue()
    put(waiting, 20, 8, 40)
    assert sorted(taken(waiting)) == [8, 20, 40]


def test_other_options_are_another_batch():
    waiting = WorkQueue()
    put(waiting, 10, 10)
    put(waiting, 10, now=1.0, search=Search(beam_size=3))
    waiting.put(job := RequestJob(), [ScoreItem((1, 2), (3,), 100)], job.expect(1), 2.0)
    with_prefix = DecodeItem(Request(ids=(7,) * 9, prefix=(5,)), SEARCH, 100)
    waiting.put(job := RequestJob(), [with_prefix], job.expect(1), 3.0)
    sizes = []
    while waiting.first() is not None:
        sizes.append(len(taken(waiting)))
    assert sizes == [2, 1, 1, 1]


def test_what_nobody_waits_for_is_dropped():
    waiting = WorkQueue()
    left = put(waiting, 10, 11, 12)
    put(waiting, 13, now=1.0)
    left.cancel(client_gone())
    assert taken(waiting) == [13]
    assert waiting.first() is None
    assert (len(waiting), waiting.tokens) == (0, 0)

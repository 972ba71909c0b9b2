"""Who goes next, and with whom."""

from regard.engine.engines.protocol import Request, Search
from regard.serve.http.errors import gone
from regard.serve.work.job import Job
from regard.serve.work.tasks import Decode, Score
from regard.serve.work.waiting import Waiting

SEARCH = Search(beam_size=2)


def tasks(*lengths, search=SEARCH):
    return [Decode(Request(ids=(7,) * (length - 1)), search) for length in lengths]


def put(waiting, *lengths, now=0.0, search=SEARCH, job=None):
    job = job or Job()
    found = tasks(*lengths, search=search)
    waiting.put(job, found, job.expect(len(found)), now)
    return job


def taken(waiting, room=1000):
    return [item.task.length for item in waiting.take(waiting.first(), room)]


def test_whoever_came_first_goes_first():
    waiting = Waiting()
    put(waiting, 11, now=2.0)
    put(waiting, 70, now=1.0)
    assert waiting.first().task.length == 70


def test_a_document_does_not_stand_in_the_way_of_a_sentence():
    waiting = Waiting()
    put(waiting, *[30] * 1000, now=0.0)
    put(waiting, 31, now=0.5)
    first = [item.task.length for item in waiting.take(waiting.first(), 32 * 20)]
    second = [item.task.length for item in waiting.take(waiting.first(), 32 * 20)]
    assert 31 in first + second


def test_nobody_is_overtaken_for_ever():
    waiting = Waiting()
    document = put(waiting, *[30] * 100, now=0.0)
    for second in range(1, 100):
        put(waiting, 30, now=float(second))
    rounds = 0
    while any(item.job is document for item in waiting.take(waiting.first(), 60)):
        rounds += 1
    assert rounds >= 10  # two at a time: the document gets on while sentences keep coming


def test_like_lengths_go_together():
    waiting = Waiting()
    put(waiting, 20, 100, 21, 8, 22, 90)
    assert sorted(taken(waiting, room=70)) == [20, 21, 22]


def test_a_batch_has_no_more_than_there_is_room_for():
    waiting = Waiting()
    put(waiting, *[10] * 50)
    assert len(taken(waiting, room=95)) == 9
    assert taken(waiting, room=5) == [10]  # one goes however long it is


def test_a_batch_that_is_not_full_takes_other_lengths_too():
    waiting = Waiting()
    put(waiting, 20, 8, 40)
    assert sorted(taken(waiting)) == [8, 20, 40]


def test_other_options_are_another_batch():
    waiting = Waiting()
    put(waiting, 10, 10)
    put(waiting, 10, now=1.0, search=Search(beam_size=3))
    waiting.put(job := Job(), [Score((1, 2), (3,))], job.expect(1), 2.0)
    with_prefix = Decode(Request(ids=(7,) * 9, prefix=(5,)), SEARCH)
    waiting.put(job := Job(), [with_prefix], job.expect(1), 3.0)
    sizes = []
    while waiting.first() is not None:
        sizes.append(len(taken(waiting)))
    assert sizes == [2, 1, 1, 1]


def test_what_nobody_waits_for_is_dropped():
    waiting = Waiting()
    left = put(waiting, 10, 11, 12)
    put(waiting, 13, now=1.0)
    left.end(gone())
    assert taken(waiting) == [13]
    assert waiting.first() is None
    assert (len(waiting), waiting.tokens) == (0, 0)

"""Subtitles: what is translated in them, how it is wrapped, and what stays."""

import io

import pytest
import srt
import webvtt

from regard.documents.subtitles import read
from regard.documents.wrapping import width, wrapped
from regard.text.marked import InlineTag, Marked
from tests.documents.translators import in_capitals, raws, texts, unchanged, with_texts
from tests.refusals import refused

SRT = r"""1
00:00:01,000 --> 00:00:02,500  X1:40 X2:600 Y1:1 Y2:2
<i>Hello there,
my friend.</i>

2
00:00:03,000 --> 00:00:4,000
{\an8}- Who is <b>that</b>?
- My brother, and
he is <font color="#ff0000">late</font>.


7
0:00:05.000 --> 00:00:06,000

8
00:00:07,000 --> 00:00:08,000
♪ la la ♪

9
00:00:09,000 --> 00:00:10,000
first part

second part
10
00:00:11,000 --> 00:00:12,000
I <3 you & 1984
[2]"""

VTT = """WEBVTT - A title: the header
Kind: captions

NOTE A comment
of two lines

STYLE
::cue(.loud) { color: red }

REGION
id:fred width:40%

intro
00:01.000 --> 00:02.000 align:start  position:10%
<v.first Fred>Tom &amp; I&nbsp;are <c.loud>here</c>
and <00:01.500>there

01:00:03.000 --> 01:00:04.000
<v Fred>Hi!
<v Mary>Hello!

NOTE the end -- really
"""


def test_the_lines_of_a_cue_are_one_text():
    document = read(SRT.encode())
    assert texts(document) == [
        "Hello there, my friend.",
        "Who is that?",
        "My brother, and he is late.",
        "la la",
        "first part",
        "second part",
        "I <3 you & 1984 [2]",
    ]
    assert raws(document.segments[1]) == ["<b>", "</b>"]
    assert raws(document.segments[2]) == ['<font color="#ff0000">', "</font>"]


def test_times_numbers_and_tags_stay():
    expected = SRT
    expected = expected.replace("brother, and\nhe", "brother,\nand he")  # wrapped at the comma
    for text in ["Hello there,", "my friend.", "Who is", "that", "My brother,", "and he is", "late", "la la"]:
        expected = expected.replace(text, text.upper())
    expected = expected.replace("first part", "FIRST PART").replace("second part", "SECOND PART")
    expected = expected.replace("I <3 you & 1984\n[2]", "I <3 YOU & 1984 [2]")  # short enough
    assert in_capitals(read(SRT.encode())).decode() == expected


def test_another_reader_of_subrip_finds_the_same_cues():
    before = list(srt.parse(SRT, ignore_errors=True))
    after = list(srt.parse(in_capitals(read(SRT.encode())).decode(), ignore_errors=True))
    assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
    assert [cue.content.split() for cue in after if "<" not in cue.content] == [
        cue.content.upper().split() for cue in before if "<" not in cue.content
    ]


def test_webvtt_keeps_header_notes_styles_and_settings():
    document = read(VTT.encode())
    assert texts(document) == ["Tom & I\xa0are here and there", "Hi!", "Hello!"]
    expected = VTT.replace("Tom &amp; I&nbsp;are <c.loud>here</c>\nand <00:01.500>there", "PLACE")
    expected = expected.replace("Hi!", "HI!").replace("Hello!", "HELLO!")
    written = in_capitals(document).decode()
    assert written == expected.replace("PLACE", "TOM &amp; I&nbsp;ARE\n<c.loud>HERE</c> AND <00:01.500>THERE")
    cues = webvtt.from_buffer(io.StringIO(written)).captions
    assert [cue.text.split() for cue in cues] == [
        ["TOM", "&amp;", "I&nbsp;ARE", "HERE", "AND", "THERE"],
        ["HI!", "HELLO!"],
    ]


@pytest.mark.parametrize("text", [SRT, VTT, "", "WEBVTT", "WEBVTT\n\n", SRT + "\n\n\n"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("mark", "encoding"), [(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")]
)
def test_its_own_texts_give_the_same_bytes(text, line_break, mark, encoding):
    content = mark + text.replace("\n", line_break).encode(encoding)
    document = read(content)
    assert unchanged(document) == content
    written = in_capitals(document)
    assert written.startswith(mark)
    assert written.decode(encoding).count("\n") == written.decode(encoding).count(line_break)


@pytest.mark.parametrize(
    ("translation", "lines"),
    [
        ("你好，我的朋友，今天好吗？", ["你好，我的朋友，", "今天好吗？"]),
        ("短", ["短"]),
        (
            "Guten Tag, mein Freund, wie geht es dir heute?",
            ["Guten Tag, mein Freund,", "wie geht es dir heute?"],
        ),
        ("他说的那件事情我们昨天已经全部知道了", ["他说的那件事情我们", "昨天已经全部知道了"]),
        ("안녕하세요 나의 오랜 친구여", ["안녕하세요 나의", "오랜 친구여"]),
        ("Einwortohneleerzeichen", ["Einwortohneleerzeichen"]),
    ],
)
def test_translations_are_wrapped_into_balanced_lines(translation, lines):
    content = "1\n00:00:01,000 --> 00:00:02,000\nHello there,\nmy friend\n"
    written = with_texts(read(content.encode()), [translation]).decode()
    assert written.split("\n")[2:-1] == lines


def test_a_long_translation_of_one_line_has_two():
    content = "1\n00:00:01,000 --> 00:00:02,000\n这个句子用中文写出来只占一行，用英文就要两行了\n"
    long = "Written in Chinese this sentence takes one line, and in English it takes two of them"
    assert with_texts(read(content.encode()), [long]).decode().split("\n")[2:-1] == [
        "Written in Chinese this sentence takes one line,",
        "and in English it takes two of them",
    ]


@pytest.mark.parametrize(
    ("text", "tags", "written"),
    [
        ("one two three four", [(0, "<i>", "o"), (18, "</i>", "c")], "<i>one two\nthree four</i>"),
        ("one two three four", [(4, "<i>", "o"), (7, "</i>", "c")], "one <i>two</i>\nthree four"),
        (
            "one two three four",
            [(7, "<i>", "o"), (13, "</i>", "c")],
            "one two\n<i>three</i> four",
        ),
        ("one two three four", [(8, "<i>", "o"), (13, "</i>", "c")], "one two\n<i>three</i> four"),
        ("one two three four", [(7, "<br>", ""), (7, "</i>", "c")], "one two\n<br></i>three four"),
        (
            "一二三四",
            [(1, "<i>", "o"), (2, "</i>", "c"), (2, "<b>", "o"), (4, "</b>", "c")],
            "一<i>二</i>\n<b>三四</b>",
        ),
    ],
)
def test_tags_stay_at_their_words_when_lines_are_wrapped(text, tags, written):
    named = {"o": {"opens": "x"}, "c": {"closes": "x"}, "": {}}
    marked = Marked(text, tuple(InlineTag(place, raw, **named[kind]) for place, raw, kind in tags))
    assert wrapped(marked, 2).written() == written


def test_the_width_of_a_line_is_that_on_a_screen():
    assert [width(text) for text in ("abc", "中文", "e\u0301", "，")] == [3, 4, 1, 2]


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b"Just a text\nwithout times\n", "damaged_file", "line 1"),
        (b"1\n00:00:01,000 -> 00:00:02,000\nHi\n", "damaged_file", "line 2"),
        (b"1\n00:00:01,000 --> 00:00\n\n2\n00:00:03,0x0 --> 00:00:04,000\nHi\n", "damaged_file", "line 5"),
        ("1\n00:00:01,000 --> 00:00:02,000\nfür\n".encode("latin-1"), "not_utf_8", "3"),
    ],
)
def test_damaged_subtitles_are_refused(content, code, place):
    with refused(code, place):
        read(content)

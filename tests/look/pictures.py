"""What a test asks of a picture: is it XML, where is its text, through which points do its lines go."""

import re
from dataclasses import dataclass
from math import cos, radians, sin
from xml.etree import ElementTree

from regard.look.figures.svg import text_width

NAMESPACE = "{http://www.w3.org/2000/svg}"
MOVES = re.compile(r"([ML])(-?[\d.]+) (-?[\d.]+)")
TURN = re.compile(r"translate\((?P<x>[-\d.]+) (?P<y>[-\d.]+)\) rotate\((?P<degrees>[-\d.]+)\)")


@dataclass(frozen=True)
class Words:
    """A text of a picture, and the corners of the room it may take."""

    text: str
    corners: tuple[tuple[float, float], ...]
    turned: bool

    @property
    def box(self):
        """Left, top, right, bottom."""
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)


def parse(picture):
    return ElementTree.fromstring(picture.encode("utf-8"))


def size(picture):
    _, _, width, height = map(float, parse(picture).get("viewBox").split())
    return width, height


def all_of(picture, name):
    return list(parse(picture).iter(NAMESPACE + name))


def words_of(picture):
    return [_words(text) for text in all_of(picture, "text")]


def texts(picture):
    return [text.text for text in all_of(picture, "text")]


def points(d):
    """The points of a path that are given outright."""
    return [(float(x), float(y)) for _, x, y in MOVES.findall(d)]


def outside(picture):
    """The texts that stick out of the picture."""
    width, height = size(picture)
    found = []
    for words in words_of(picture):
        left, top, right, bottom = words.box
        if left < 0 or top < 0 or right > width or bottom > height:
            found.append(words.text)
    return found


def overlapping(picture):
    """Pairs of texts that share room. Leaning texts are compared in a frame that leans with them."""
    found = []
    for turned in (False, True):
        all_words = [words for words in words_of(picture) if words.turned == turned]
        boxes = [(words.text, _upright(words.corners, 50.0 if turned else 0.0)) for words in all_words]
        for i, (text, (left, top, right, bottom)) in enumerate(boxes):
            for other, (left2, top2, right2, bottom2) in boxes[i + 1 :]:
                if left < right2 and left2 < right and top < bottom2 and top2 < bottom:
                    found.append((text, other))
    return found


def _words(text):
    font = float(text.get("font-size"))
    width = text_width(text.text or "", font)
    start = {"end": -width, "middle": -width / 2}.get(text.get("text-anchor"), 0.0)
    # Letters reach from about 0.8 em above the line they stand on to 0.2 em below it.
    corners = [(x, y) for x in (start, start + width) for y in (-0.8 * font, 0.2 * font)]
    if turn := TURN.fullmatch(text.get("transform", "")):
        x, y, angle = float(turn["x"]), float(turn["y"]), radians(float(turn["degrees"]))
        corners = [
            (x + a * cos(angle) - b * sin(angle), y + a * sin(angle) + b * cos(angle)) for a, b in corners
        ]
        return Words(text.text or "", tuple(corners), turned=True)
    x, y = float(text.get("x")), float(text.get("y"))
    return Words(text.text or "", tuple((x + a, y + b) for a, b in corners), turned=False)


def _upright(corners, degrees):
    angle = radians(degrees)
    turned = [(x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle)) for x, y in corners]
    xs, ys = zip(*turned, strict=True)
    # A hair of tolerance: turning and turning back rounds.
    return min(xs) + 0.01, min(ys) + 0.01, max(xs) - 0.01, max(ys) - 0.01

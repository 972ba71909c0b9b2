"""Words and letters that are common in a language: by them languages of one script are told apart.

Most are words of grammar. So where two languages mix they tell whose sentence it is: whoever writes 我喜欢
machine learning 和 deep learning writes Chinese, with as many words of English in it.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

# Of languages with words, letters that few others of their script have; of others, words of one letter.
# code|words|letters
_COMMON = """
en|the a of and to in is that for it was on are with as be this at not have or you i he we do does what how|
de|der die das und ist nicht ein eine den von zu mit sich auf für im dem auch es an als ich|äöüß
fr|le la les de des et est un une dans que qui pour sur pas au du il elle je vous tout avec ce|àéèêçœ
es|el la los las de que y en un una es por con para no se del al como su más está|áíóúñ¿¡
it|il lo la gli di che e un una è per con non del della sono si come più nel alla questo|àìòù
pt|o a os as de que e em um uma é não para com por do da no na se mais|ãõáçê
nl|de het een van en is dat op te zijn niet met voor er aan ook als maar bij uit|
sv|och att det som en är på av för med den inte har till ett om han jag vi|åäö
da|og at det er en af på til for med den ikke har de som et der jeg vi|æøå
nb|og at det er en av på til for med den ikke har som et jeg vi|åæø
fi|ja on ei se että hän oli mutta kun niin kuin myös mikä tämä ovat ole joka|äö
pl|i w na z się nie to że do jest jak o po co ale za od przez|łąężźśćń
cs|a se v na je že to s z do i o ale jak jako pro po ve|řěůščžý
sk|a sa v na je že to s z do aj o ale ako pre po vo|ľĺŕôäščžý
hu|a az és hogy nem egy is van ez volt csak de meg mint még el|őűöüáé
ro|și în de la cu un o pe nu este că din mai pentru care sunt|ăâîșț
tr|ve bir bu da de için ile çok ne var daha gibi olan kadar ama değil|ışğçöü
vi|và là của có không một được cho trong người các với những này đã để|ươđạế
id|yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke bisa ada|
ms|yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke boleh ada|
ru|и в не на что он с как это по но из у за от так же для|ыэёъ
uk|і в не на що він з як це до та але за від так для у й|їєґ
be|і ў не на што ён з як гэта да але за ад так для|ўыэё
bg|и в не на че той с като това по но от за се да е си|ъщ
sr|и у не на што он с као је да се за од али су|ћђјљњ
mk|и во не на што тој со како ова да се за од но се|ќѓѕј
zh||的是不了在有我你他她这那个们和就也都还把被给让请很吗呢吧么谁来为到以说要
yue||嘅係唔咗喺有我佢呢個哋嚟上大同冇啲嘢咁話
ar|في من على إلى أن هذا التي الذي كان لا ما مع عن هو|ةىأإ
fa|در از به که این را است با برای آن یک می های شده|پچژگیک
ur|کے میں کی ہے اور سے کا کو نے پر یہ ہیں|ٹڈڑےہ
hi|के में की है और से का को ने पर यह हैं एक|
mr|आहे आणि च्या ला ने हे या तर होते मध्ये ते|ळ
"""

_WORD = re.compile(r"[^\W\d_]+")


class Common(NamedTuple):
    """What is common in one language."""

    words: tuple[str, ...]
    letters: str


@cache
def common_words() -> dict[str, Common]:
    """What is common in each language that is known."""
    lines = (line.split("|") for line in _COMMON.strip().splitlines())
    return {code: Common(tuple(dict.fromkeys(words.split())), letters) for code, words, letters in lines}


class Found:
    """What is common in any language, in one text."""

    def __init__(self, text: str) -> None:
        text = text.lower()
        self._words, self._letters = Counter(_WORD.findall(text)), Counter(text)

    def hits(self, language: str) -> int:
        """How much there is of a language's common words and own letters; a word counts twice."""
        return 2 * self._common_words(language) + self._own_letters(language)

    def grammar(self, language: str) -> int:
        """How many words of a language's grammar there are."""
        words, _ = _common(language)
        return self._common_words(language) if words else self._own_letters(language)

    def _common_words(self, language: str) -> int:
        return sum(self._words[word] for word in _common(language).words)

    def _own_letters(self, language: str) -> int:
        return sum(self._letters[letter] for letter in _common(language).letters)


def _common(language: str) -> Common:
    return common_words().get(language.split("-")[0], Common((), ""))

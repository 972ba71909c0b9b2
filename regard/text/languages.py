"""Languages: their codes and names, and the language that the name of a file or column shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

COMPRESSED = ("gz", "xz", "zst")
"""Suffixes of compressed files."""

DECIDING = 1 << 14
"""Characters at the beginning of a document that decide its language."""

# Code, English name, Chinese name.
_TABLE = """
af Afrikaans 南非荷兰语|am Amharic 阿姆哈拉语|ar Arabic 阿拉伯语|as Assamese 阿萨姆语
az Azerbaijani 阿塞拜疆语|be Belarusian 白俄罗斯语|bg Bulgarian 保加利亚语|bn Bengali 孟加拉语
bo Tibetan 藏语|br Breton 布列塔尼语|bs Bosnian 波斯尼亚语|ca Catalan 加泰罗尼亚语|cs Czech 捷克语
cy Welsh 威尔士语|da Danish 丹麦语|de German 德语|el Greek 希腊语|en English 英语|eo Esperanto 世界语
es Spanish 西班牙语|et Estonian 爱沙尼亚语|eu Basque 巴斯克语|fa Persian 波斯语|fi Finnish 芬兰语
fo Faroese 法罗语|fr French 法语|fy West_Frisian 西弗里西亚语|ga Irish 爱尔兰语
gd Scottish_Gaelic 苏格兰盖尔语|gl Galician 加利西亚语|gu Gujarati 古吉拉特语|ha Hausa 豪萨语
he Hebrew 希伯来语|hi Hindi 印地语|hr Croatian 克罗地亚语|ht Haitian_Creole 海地克里奥尔语
hu Hungarian 匈牙利语|hy Armenian 亚美尼亚语|id Indonesian 印度尼西亚语|ig Igbo 伊博语|is Icelandic 冰岛语
it Italian 意大利语|ja Japanese 日语|jv Javanese 爪哇语|ka Georgian 格鲁吉亚语|kk Kazakh 哈萨克语
km Khmer 高棉语|kn Kannada 卡纳达语|ko Korean 韩语|ku Kurdish 库尔德语|ky Kyrgyz 吉尔吉斯语|la Latin 拉丁语
lb Luxembourgish 卢森堡语|lo Lao 老挝语|lt Lithuanian 立陶宛语|lv Latvian 拉脱维亚语|mg Malagasy 马尔加什语
mi Maori 毛利语|mk Macedonian 马其顿语|ml Malayalam 马拉雅拉姆语|mn Mongolian 蒙古语|mr Marathi 马拉地语
ms Malay 马来语|mt Maltese 马耳他语|my Burmese 缅甸语|nb Norwegian_Bokmål 书面挪威语|ne Nepali 尼泊尔语
nl Dutch 荷兰语|nn Norwegian_Nynorsk 新挪威语|no Norwegian 挪威语|oc Occitan 奥克语|or Odia 奥里亚语
pa Punjabi 旁遮普语|pl Polish 波兰语|ps Pashto 普什图语|pt Portuguese 葡萄牙语|ro Romanian 罗马尼亚语
ru Russian 俄语|rw Kinyarwanda 卢旺达语|sa Sanskrit 梵语|sd Sindhi 信德语|si Sinhala 僧伽罗语
sk Slovak 斯洛伐克语|sl Slovenian 斯洛文尼亚语|so Somali 索马里语|sq Albanian 阿尔巴尼亚语
sr Serbian 塞尔维亚语|su Sundanese 巽他语|sv Swedish 瑞典语|sw Swahili 斯瓦希里语|ta Tamil 泰米尔语
te Telugu 泰卢固语|tg Tajik 塔吉克语|th Thai 泰语|ti Tigrinya 提格里尼亚语|tk Turkmen 土库曼语
tl Tagalog 他加禄语|tr Turkish 土耳其语|tt Tatar 鞑靼语|ug Uyghur 维吾尔语|uk Ukrainian 乌克兰语
ur Urdu 乌尔都语|uz Uzbek 乌兹别克语|vi Vietnamese 越南语|wo Wolof 沃洛夫语|xh Xhosa 科萨语
yi Yiddish 意第绪语|yo Yoruba 约鲁巴语|yue Cantonese 粤语|zh Chinese 中文|zu Zulu 祖鲁语
zh-CN Chinese_(China) 中文（中国）|zh-TW Chinese_(Taiwan) 中文（台湾）
zh-HK Chinese_(Hong_Kong) 中文（香港）|zh-Hans Simplified_Chinese 简体中文
zh-Hant Traditional_Chinese 繁体中文|pt-BR Brazilian_Portuguese 巴西葡萄牙语
pt-PT European_Portuguese 欧洲葡萄牙语|en-GB British_English 英式英语|en-US American_English 美式英语
"""

# Three-letter codes in the names of corpora.
_THREE = """
afr af|ara ar|ben bn|bul bg|cat ca|ces cs|cze cs|cmn zh|chi zh|zho zh|dan da|deu de|ger de|ell el|eng en
epo eo|est et|fas fa|fin fi|fra fr|fre fr|gle ga|heb he|hin hi|hrv hr|hun hu|ind id|isl is|ita it|jpn ja
kat ka|kaz kk|khm km|kor ko|lat la|lav lv|lit lt|mkd mk|mon mn|msa ms|mya my|nld nl|nob nb|nor no|pol pl
por pt|ron ro|rus ru|slk sk|slv sl|spa es|sqi sq|srp sr|swe sv|tam ta|tel te|tha th|tur tr|uig ug|ukr uk
urd ur|vie vi
"""


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code, and its names for people."""

    code: str
    english: str
    chinese: str


def _languages() -> dict[str, Language]:
    entries = (entry.split(" ") for line in _TABLE.split("\n") for entry in line.split("|") if entry)
    return {code: Language(code, english.replace("_", " "), chinese) for code, english, chinese in entries}


LANGUAGES = _languages()
"""The languages with known names; options accept any other code, too."""

_CODES = {code.lower(): code for code in LANGUAGES} | dict(
    entry.split(" ") for line in _THREE.split("\n") for entry in line.split("|") if entry
)

_LIKELY = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]{4})?")


def known_code(word: str) -> str | None:
    """The code of a language in its usual spelling: for `ZH`, `zh_cn`, `deu`; None if it is unknown."""
    return _CODES.get(word.lower().replace("_", "-"))


def is_code(word: str) -> bool:
    """Whether a word may be a language code: a known one, `xal`, or one with a script, `sr-Cyrl`."""
    return known_code(word) is not None or _LIKELY.fullmatch(word) is not None


def language_name(code: str, *, chinese: bool = False) -> str:
    """The name of a language in English or in Chinese; its code if it is unknown."""
    language = LANGUAGES.get(known_code(code) or "")
    if language is None:
        return code
    return language.chinese if chinese else language.english


def language_in(name: str) -> str | None:
    """The language that the name of a column shows, or None.

    The code is the whole name (`zh`, `zh_cn`), or what follows the last dot (`translation.zh`), underscore
    (`source_zh`) or hyphen; `en_de` is ambiguous.
    """
    name = name.rpartition(".")[2]
    before, _, last = name.replace("_", "-").rpartition("-")
    return known_code(name) or (None if known_code(before) else known_code(last))


def language_of(path: Path | str) -> str | None:
    """The language that the name of a file shows, or None.

    The code is the last part of the name (`train.zh`, `train.zh.xz`), the one before `.txt`
    (`train.zh.txt`), or the whole name (`zh.txt`). `train-zh.txt` and `de-en.txt` are ambiguous.
    """
    parts = Path(path).name.split(".")
    # A file named `is` or `so` shows nothing; `so.txt` does.
    several = len(parts) > 1
    if len(parts) > 1 and parts[-1].lower() in COMPRESSED:
        parts.pop()
    if len(parts) > 1 and parts[-1].lower() == "txt":
        parts.pop()
    return known_code(parts[-1]) if several else None

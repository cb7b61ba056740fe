"""The words that a caption of an emoji may have: a closed vocabulary, a reader of free text, and templates. No torch.

read("a drawing of a tiger").ids        # whole numbers for the text tower
read("a purple tiger").unknown          # ('...',) whatever the vocabulary has not
sentences_for(things()[0], "noto")        # every caption that pre-training may draw for a picture
"""

import difflib
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ftp.lab.emoji import Thing, things
from ftp.lab.record import LabError

MOST_WORDS, MOST_CHARACTERS = 24, 200  # of a caption
PADDING = 0  # the number that fills short captions up; words are numbered from 1
# what the head of names is built from; the last one is never shown in pre-training
TEMPLATES = (
    "{name}",
    "a {name}",
    "an emoji of a {name}",
    "a picture of a {name}",
    "a small drawing of a {name}",
    "this is a {name}",
    "the symbol for {name}",
    "an icon that shows a {name}",
)
UNSEEN = TEMPLATES[-1]
WITH_KIND = ("a {name}, a kind of {kind}", "{kind}: {name}", "a picture of {kind}, a {name}")
ONLY_KIND = ("a picture of {kind}", "some kind of {kind}")
WITH_STYLE = (
    "a {name}, {style}",
    "a {style} drawing of a {name}",
    "{style} {name}",
    "an emoji of a {name} in {style} style",
)
# two ways to say how an artist draws; the one that pre-training never shows has none
STYLES = {
    "noto": ("shaded", "soft and round"),
    "twemoji": ("flat and bold", "simple"),
    "openmoji": ("outlined and coloured", "thick lined"),
    "openmoji_black": ("black and white", "empty outline"),
    "fluent_flat": ("flat and bright", "modern"),
}
_WORD = re.compile(r"[^\W_]+", re.UNICODE)


def words_of(text: str) -> list[str]:
    """The words of a text in small letters; hyphens and marks part them.

    >>> words_of("A tightly-closed eye, no?")
    ['a', 'tightly', 'closed', 'eye', 'no']
    """
    return _WORD.findall(text.lower().replace("'", "").replace("’", ""))


def kinds_of(thing: Thing) -> list[str]:
    """The words for the kinds that a thing belongs to, from wide to narrow, each once.

    >>> kinds_of(next(t for t in things() if t.name == "tiger"))
    ['animals nature', 'animal', 'animal mammal']
    """
    kinds = (thing.group, thing.coarse, thing.subgroup)
    return [text for text in dict.fromkeys(" ".join(words_of(kind)) for kind in kinds) if text]


@functools.cache
def vocabulary() -> tuple[str, ...]:
    """Every word that a caption may have, in the order of their numbers; the first, empty one fills captions up.

    >>> vocabulary()[PADDING], "tiger" in vocabulary(), "tigress" in vocabulary()
    ('', True, False)
    """
    sentences = [*TEMPLATES, *WITH_KIND, *ONLY_KIND, *WITH_STYLE, *(style for two in STYLES.values() for style in two)]
    plain = [re.sub(r"{\w+}", " ", sentence) for sentence in sentences]
    named = [text for t in things() for text in (t.name, t.short, *kinds_of(t))]
    return ("", *sorted({word for text in (*plain, *named) for word in words_of(text)}))


@functools.cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(vocabulary()) if number != PADDING}


@dataclass(frozen=True)
class Reading:
    """A caption as it was read: the numbers of its known words in their order, and the words that are not known."""

    ids: tuple[int, ...]
    unknown: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """What a person should be told of it, in one sentence; "" if every word is known.

        >>> read("a wug tigger").remark
        'left out, for these words were in no caption: wug, tigger (did you mean tiger?)'
        """
        if not self.unknown:
            return ""
        return f"left out, for these words were in no caption: {', '.join(map(_with_hint, self.unknown))}"


def read(text: str) -> Reading:
    """A free text as numbers; refused if it is empty, too long, or has no known word.

    >>> read("a tiger") == read("A  tiger!"), len(read("a tiger").ids)
    (True, 2)
    >>> read(" ")
    Traceback (most recent call last):
    ftp.lab.record.LabError: the caption is empty; write what a picture shows, such as "a drawing of a tiger"
    """
    example = 'such as "a drawing of a tiger"'
    if not isinstance(text, str):
        raise LabError(f"the caption is {text!r:.80}; it must be text, {example}")
    if len(text) > MOST_CHARACTERS:
        raise LabError(f"the caption has {len(text)} characters; at most {MOST_CHARACTERS} are read, {example}")
    words = words_of(text)
    if not text.strip():
        raise LabError(f"the caption is empty; write what a picture shows, {example}")
    if not words:
        raise LabError(f"the caption {text!r} has no word; write what a picture shows, {example}")
    if len(words) > MOST_WORDS:
        raise LabError(f"the caption has {len(words)} words; at most {MOST_WORDS} are read, {example}")
    numbers = _numbers()
    unknown = tuple(dict.fromkeys(word for word in words if word not in numbers))
    ids = tuple(numbers[word] for word in words if word in numbers)
    if not ids:
        told = ", ".join(map(_with_hint, unknown))
        raise LabError(f"no word of the caption was in any caption of the pre-training: {told}; write {example[8:]}")
    return Reading(ids, unknown)


def _with_hint(word: str) -> str:
    close = difflib.get_close_matches(word, vocabulary()[1:], n=1, cutoff=0.75)
    return f"{word} (did you mean {close[0]}?)" if close else word


def padded(captions: Sequence[str]) -> list[list[int]]:
    """Captions as rows of equal length, filled up with `PADDING`.

    >>> [len(row) for row in padded(["a tiger", "a picture of a tiger"])]
    [5, 5]
    """
    rows = [list(read(caption).ids) for caption in captions]
    most = max(map(len, rows))
    return [row + [PADDING] * (most - len(row)) for row in rows]


def sentences_for(thing: Thing, artist: str, kind: str = "name") -> list[str]:
    """The captions of a kind that pre-training draws from: "name", "style", "kind and name", "kind"."""
    names = list(dict.fromkeys((thing.name, thing.short)))
    if kind == "name":
        return [t.format(name=name) for name in names for t in TEMPLATES if t != UNSEEN]
    if kind == "style":
        return [t.format(name=name, style=s) for name in names for t in WITH_STYLE for s in STYLES[artist]]
    templates = WITH_KIND if kind == "kind and name" else ONLY_KIND
    return list(dict.fromkeys(t.format(name=n, kind=k) for n in names for t in templates for k in kinds_of(thing)))

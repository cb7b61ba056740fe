"""What went wrong, as a sentence on the page: it begins with a capital, and tells a class no path of the server."""

import re

from app.limits import class_mode, store_path

# two names or more after a slash, or after a drive letter; not the middle of a word or of a web address
PATH = re.compile(r"(?<![\w/:.])(?:[A-Za-z]:[\\/]|/)(?:[^\s/\\;,:'\"()]+[\\/])+[^\s/\\;,:'\"()]*")


def without_paths(text: str) -> str:
    """On a server for a class, a text without the paths in it: they are for who has a terminal there."""
    if not class_mode():
        return text
    return PATH.sub("a file of the server", text.replace(str(store_path()), "the store of runs"))


def shown(error: Exception | str) -> str:
    """An error's text as it is shown on the page.

    >>> shown("the queue is full; try again in a minute")
    'The queue is full; try again in a minute'
    """
    text = without_paths(str(error))
    return text[:1].upper() + text[1:]

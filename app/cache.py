"""What many viewers need and only one has to make."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")
MOST = 64
_values: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()


def cached(key: Hashable, make: Callable[[], T]) -> T:
    """The value of a key, made on the first call; the keys asked for last are kept. Never change what it returns.

    >>> made = []
    >>> [cached("a key", lambda: made.append(1) or "value") for _ in range(2)], made
    (['value', 'value'], [1])
    """
    with _lock:
        if key in _values:
            _values.move_to_end(key)
            return cast(T, _values[key])
    value = make()
    with _lock:
        _values[key] = value
        while len(_values) > MOST:
            _values.popitem(last=False)
    return value

"""What the pages of results share."""

from typing import Any

from ftp.lab import methods


def spearman(values: list[float]) -> float:
    """The rank correlation of values with their place; ties are broken by place."""
    n = len(values)
    ranks = [0] * n
    for rank, i in enumerate(sorted(range(n), key=values.__getitem__)):
        ranks[i] = rank
    return 1 - 6 * sum((rank - i) ** 2 for i, rank in enumerate(ranks)) / (n * (n * n - 1))


def edges(sheet: dict[str, Any]) -> str:
    """Which choices are the smallest or the largest value that was tried."""
    at_the_edge = []
    for method, values in sheet["grid"].items():
        for name, tried in values.items():
            chosen = sheet["recipe"][method].get(name)
            if len(tried) > 1 and chosen in (min(tried), max(tried)):
                at_the_edge.append(
                    f"{methods.method(method).title} {name}={chosen:g} (of {', '.join(map(str, tried))})"
                )
    return "; ".join(at_the_edge) or "nothing"

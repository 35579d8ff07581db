"""A progress bar beside the blocks of a long computation."""

from collections.abc import Iterator


def steps(
    count: int, block: int, progress: bool | None = None, delay: float = 0.0
) -> Iterator[int]:
    """Yield where each block of rows begins, beside a progress bar that waits ``delay`` seconds.

    By default it is shown on a terminal where tqdm is installed.

    >>> list(steps(5, 2))
    [0, 2, 4]
    """
    try:
        from tqdm import tqdm
    except ModuleNotFoundError as error:
        if progress:
            raise ImportError(
                f"a progress bar needs {error.name}; install it with: pip install tqdm"
            ) from None
        yield from range(0, count, block)
        return
    hidden = None if progress is None else not progress
    with tqdm(total=count, unit=" rows", disable=hidden, delay=delay) as bar:
        for at in range(0, count, block):
            yield at
            bar.update(min(block, count - at))

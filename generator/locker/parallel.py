"""Many independent requests at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed


def run_all(tasks: Iterable[Callable[[], None]], workers: int, stop: threading.Event) -> None:
    """Run tasks in threads and raise the first error; then nothing more is begun, and `stop` ends what waits.

    Tasks should hold little: all of them are queued at once.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="locker")
    try:
        for future in as_completed([pool.submit(task) for task in tasks]):
            future.result()
    except BaseException as error:
        stop.set()
        # After Ctrl-C nobody wants to wait for an answer of the service.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()

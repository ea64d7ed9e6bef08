"""Many independent requests at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait


def run_all(tasks: Iterable[Callable[[], None]], workers: int, stop: threading.Event) -> None:
    """Run tasks in threads and raise the first error; then nothing more is begun, and `stop` ends what waits.

    Tasks are taken from the iterable as threads become free, so that a long one holds little memory.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="locker")
    running: set[Future[None]] = set()
    try:
        for task in tasks:
            running.add(pool.submit(task))
            if len(running) >= 2 * workers:
                running = _some_ended(running)
        while running:
            running = _some_ended(running)
    except BaseException as error:
        stop.set()
        # After Ctrl-C nobody wants to wait for an answer of the service.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()


def _some_ended(running: set[Future[None]]) -> set[Future[None]]:
    ended, others = wait(running, return_when=FIRST_COMPLETED)
    for future in ended:
        future.result()
    return others

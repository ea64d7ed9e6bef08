"""torchrun, also where PyTorch 1.13 meets Python 3.11.

It looks for the value of `--redirects` and of `--tee` among the flags that Python lists, and Python 3.11 lists
only flags of one bit. It finds neither 0, the default of both, nor 3, and no launch gets beyond "'NoneType' object has
no attribute 'get'". Debian 12 has exactly these two.
Sources: PyTorch 1.13, torch/distributed/elastic/multiprocessing/api.py, Std.from_str;
https://docs.python.org/3/library/enum.html, Flag, "Changed in version 3.11".
"""

from torch.distributed import run
from torch.distributed.elastic.multiprocessing import Std

known = Std.from_str


def flags(text):
    """`0` to `3` for all processes of a node, or for each of them, as in `0:3,1:0`; whatever else raises ValueError."""
    known(text)
    if ":" not in text:
        return Std(int(text))
    return {int(rank): Std(int(value)) for rank, value in (pair.split(":") for pair in text.split(","))}


if __name__ == "__main__":
    if known("0") is None:
        Std.from_str = staticmethod(flags)
    run.main()

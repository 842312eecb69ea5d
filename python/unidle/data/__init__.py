"""Sources of samples, and the loader that makes batches of them.

    from unidle.data import Loader, images

    loader = Loader(images("photographs/train"), batch_size=64)
    for picture, label in loader:
        ...

A loader replaces torch's DataLoader. One pool of threads in this process makes the samples; nothing is
forked, pickled or copied.
"""

from unidle.data import sources
from unidle.data.loader import Loader
from unidle.data.recognition import like
from unidle.data.source import Field, Source
from unidle.data.sources import *  # noqa: F403

__all__ = ["Field", "Loader", "Source", "like"]
__all__ += sources.__all__

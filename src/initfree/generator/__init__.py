"""Dataset generator: controlled structure-from-motion problems with exact ground truth.

`generate("set1", seed=0)` makes a dataset in memory, `write(dataset, directory)` writes COLMAP models, a
database, statistics and pictures. See docs/generator.md.
"""

try:
    import embreex as _embreex  # noqa: F401
    import pydantic as _pydantic  # noqa: F401
except ImportError as error:
    from initfree.extras import install

    raise ImportError(f"the dataset generator needs `{install('generate')}`: {error}") from error

from initfree.generator.config import Config
from initfree.generator.dataset import Dataset
from initfree.generator.export import write
from initfree.generator.pipeline import generate
from initfree.generator.presets import load, presets
from initfree.generator.projections import Projections
from initfree.generator.trajectories import Poses

__all__ = ["Config", "Dataset", "Poses", "Projections", "generate", "load", "presets", "write"]

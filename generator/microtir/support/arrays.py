"""Defines the type of arrays whose elements may be of any kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

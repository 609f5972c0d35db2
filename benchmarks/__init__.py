"""Figures that can be compared: ratios within one run, beside a peer or a raw limit.

``python -m benchmarks`` runs all of them.
"""

import os

# Where Python is told to keep nothing compiled, each command and each host compiles all of its modules again: 0.3 to
# 0.7 s that nobody has who installed it. What is measured here is started as an installation is.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

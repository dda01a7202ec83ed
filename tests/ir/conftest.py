"""Makes the helpers of this folder importable by name."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

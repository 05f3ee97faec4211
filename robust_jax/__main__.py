"""`python -m robust_jax`."""

import sys

from robust_jax.cli import main

sys.exit(main())

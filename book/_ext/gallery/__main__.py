"""Draw the poster alone: `make poster`."""

import sys
from pathlib import Path

from gallery.poster import write_files

write_files(Path(sys.argv[1]))

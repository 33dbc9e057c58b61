"""Say where the folder beside the repository is, which no test outside of tests/outside reads.

It has measurements and documents that may not be copied into the repository. ``HYBRIDLAB_SHARED`` names it where it stands elsewhere.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("HYBRIDLAB_SHARED") or ROOT.parent / "shared")
REFERENCE, SOURCES = SHARED / "reference", SHARED / "sources"
DATA = ROOT / "tests" / "data"
DOCUMENTS = {  # the files of the published documents, by their names in hybridlab.course.claims
    "report": "hybrid-report.txt",
    "notes": "implementation-notes.txt",
    "simulator": "hybrid-simulator.txt",
    "event log": "event-timeline.txt",
    "sweeps": "schedule-sweeps.txt",
}

if not REFERENCE.is_dir() or not SOURCES.is_dir():
    raise FileNotFoundError(f"{SHARED} has no reference and sources: these tests need that folder, or HYBRIDLAB_SHARED that names it")

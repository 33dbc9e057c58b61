"""A fixture for the tests of labs: nothing is saved in the folder from which the tests run."""

from collections.abc import Iterator
from typing import Any

import pytest

from hybridlab.course.checking import builds
from hybridlab.course.parts import folder


@pytest.fixture(scope="session", autouse=True)
def nothing_saved_here() -> Iterator[None]:
    """Let a test save functions in a folder of its own alone. Elsewhere other tests, which run at the same time, would find them."""
    here, save = folder().resolve(), builds.save

    def elsewhere(name: str, function: Any, then: str = "") -> str:
        return f"saved as {name}.py" if folder().resolve() == here else save(name, function, then)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(builds, "save", elsewhere)
        yield

"""The processes of an engine, started once for all tests of this room."""

from collections.abc import Iterator

import pytest

from hybridlab.engines import Group

RANKS = 4


@pytest.fixture(scope="session")
def groups() -> Iterator[dict[str, Group]]:
    """Keep the processes of each engine until the last test."""
    started: dict[str, Group] = {}
    yield started
    for group in started.values():
        group.close()


@pytest.fixture
def engine(request: pytest.FixtureRequest, groups: dict[str, Group]) -> str | Group:
    """Give "threads", or four processes of another engine; if a test has failed and ended them, they are new ones."""
    name: str = request.param
    if name == "threads":
        return name
    if name not in groups or not groups[name]._connections:
        groups[name] = Group(name, RANKS)
    return groups[name]

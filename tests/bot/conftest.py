"""A fake GitHub for a test, and a forge on it without pauses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.forge.github import GithubForge, open_forge
from tests.bot.forge.fake import FakeGithub


@pytest.fixture
def github() -> Iterator[FakeGithub]:
    with FakeGithub() as server:
        yield server


@pytest.fixture
def client(github: FakeGithub) -> GithubForge:
    return open_forge(github.environment(), pause=lambda _: None)

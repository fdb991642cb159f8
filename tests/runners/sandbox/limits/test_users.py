"""Users of sandboxes: an error inside the reservation stays the error that the caller sees."""

from __future__ import annotations

import pytest

from runners.sandbox.limits import users


def test_error_inside_the_reservation_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that cannot be started raises OSError, as a user that is taken does."""
    monkeypatch.setattr(users, "_can_become_any", lambda: True)
    with pytest.raises(BrokenPipeError, match="the engine is gone"), users.reserve_user():
        raise BrokenPipeError("the engine is gone")


def test_taken_users_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sandboxes share a user only if none is left."""
    monkeypatch.setattr(users, "_can_become_any", lambda: True)
    monkeypatch.setattr(users, "USERS", range(61184, 61186))
    with users.reserve_user() as first, users.reserve_user() as second, users.reserve_user() as third:
        assert first != second
        assert third == users.NOBODY

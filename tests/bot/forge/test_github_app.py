"""The forge as a GitHub App, and on GitHub Enterprise Server: the key signs, an installation token does the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.forge.github import open_forge
from runners.core.errors import InfraError, UserError
from tests.bot.forge import objects
from tests.bot.forge.fake import REPOSITORY, Answer, FakeGithub

APP, INSTALLATION = "41", "907"


class AppGithub(FakeGithub):
    """A fake that accepts only an installation's token, optionally below ``/api/v3``."""

    def __init__(self, public: bytes) -> None:
        super().__init__(me="repro-bot[bot]")
        self.public = public
        self.tokens = set()
        self.prefix = ""

    def _answer(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any) -> Answer:
        if not path.startswith(self.prefix):
            return Answer(404, objects.error("Not Found"))
        path = path.removeprefix(self.prefix)
        if not path.startswith("/app"):
            return super()._answer(method, path, query, headers, body)
        if not self._signed(headers.get("authorization", "")):
            return Answer(401, objects.error("A JSON web token could not be decoded"))
        if (method, path) == ("GET", "/app"):
            return Answer(200, {"id": int(APP), "slug": "repro-bot", "name": "Repro Bot"})
        assert (method, path) == ("POST", f"/app/installations/{INSTALLATION}/access_tokens")
        self.tokens = {"ghs_of_the_installation"}
        until = (datetime.now(tz=UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Answer(201, {"token": "ghs_of_the_installation", "expires_at": until, "permissions": {}})

    def _signed(self, header: str) -> bool:
        try:
            claims = jwt.decode(header.partition(" ")[2], self.public, algorithms=["RS256"])
        except jwt.InvalidTokenError:
            return False
        return str(claims["iss"]) == APP


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def public(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def environment(github: AppGithub, folder: Path, signing: rsa.RSAPrivateKey) -> dict[str, str]:
    (folder / "app.pem").write_bytes(pem(signing))
    return {
        "GITHUB_API_URL": f"{github.url}{github.prefix}",
        "REPROBOT_APP_ID": APP,
        "REPROBOT_APP_KEY": str(folder / "app.pem"),
        "REPROBOT_APP_INSTALLATION": INSTALLATION,
        "REPROBOT_PACE": "off",
    }


@pytest.mark.parametrize("prefix", ["", "/api/v3"], ids=["github.com", "a server of one's own"])
def test_an_app_comments_in_its_own_name(prefix: str, key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    """Login from its slug, token from the installation; every request stays below the server's own path."""
    with AppGithub(public(key)) as github:
        github.prefix = prefix
        github.open_issue(7, "body")
        mine = open_forge(environment(github, tmp_path, key), pause=lambda _: None)
        assert mine.get_login() == "repro-bot[bot]"
        assert mine.fetch_issue(REPOSITORY, 7).body == "body"
        mine.create_comment(REPOSITORY, 7, "an answer")
        assert github.ours(7) == ["an answer"]
        assert all(call.path.startswith(prefix) and call.status < 400 for call in github.log)


def test_another_apps_key_is_refused(key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    """Before any read or write."""
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with AppGithub(public(key)) as github, pytest.raises((UserError, InfraError)):
        open_forge(environment(github, tmp_path, other), pause=lambda _: None)

"""GitHub through PyGithub: the only folder that imports that library. Takes and returns the types of the contract.

PyGithub brings authentication, pacing and waiting for rate limits. Its objects are not used: each sends one more
request if an attribute is read that a list left out, which is one request for each comment. The answers are read as
data instead, every field with its type (``bot/forge/payloads.py``).

``forge.py`` implements the contract, ``connect.py`` makes the clients, ``answers.py`` reads answers and errors.
"""

from bot.forge.github.connect import open_forge, open_reader
from bot.forge.github.forge import GithubForge
from bot.forge.github.workflow_run import fetch_workflow_run

__all__ = ["GithubForge", "fetch_workflow_run", "open_forge", "open_reader"]

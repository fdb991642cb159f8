"""Read issues, comments and attachments; write our comment and labels. The only user of GitHub's API.

Start with ``contract.py``: the types, and the ``Forge`` protocol that ``github/`` and the tests' fake implement.
``sticky_comment.py`` describes the one comment that we keep on an issue.
"""

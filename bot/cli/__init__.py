"""The command line: arguments → verb. The only folder of ``bot`` that starts runs.

``app.py`` declares the commands for one issue and for this machine, ``jobs.py`` the three jobs of a workflow,
``daemon.py`` the bot as a process. ``verbs.py`` holds the work of the local commands, ``context.py`` opens the
parts that commands need (catalogue, settings, workbench), and ``terminal.py`` prints.
"""

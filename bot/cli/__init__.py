"""The command line: arguments → verb. The only folder of ``bot`` that starts runs.

``app.py`` declares the commands, ``options.py`` the options that several commands share. Neither imports a part that
only a run needs. ``verbs.py`` does the work of the commands for one issue, ``jobs.py`` the jobs of a workflow,
``daemon.py`` the bot as a process. ``context.py`` opens the parts that commands need (catalogue, settings,
workbench), and ``terminal.py`` prints.
"""

"""Open the workbench: clean up after killed runs, choose a sandbox, open the store, look for a Vulkan driver."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from runners.core.packages.catalogue import Catalogue
from runners.core.progress import Sink
from runners.environments.config import read_config
from runners.environments.store import Store, default_root, open_store
from runners.hardware import lavapipe
from runners.hardware.lavapipe import Driver
from runners.probe.canary import Canaries
from runners.probe.sessions import SessionPool
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import remove_leftovers, select_engine
from runners.sandbox.unprotected import Unprotected
from runners.workbench.run_ledger import RunLedger
from runners.workbench.workbench import Workbench

TRUST_S = 600.0
"""Seconds for which a comparison of files is trusted. A sweep opens a workbench for each issue, and would repeat the
comparison. Without a sandbox, a testcase can change the files, so each process compares them."""


def open_workbench(
    sandbox: str,
    catalogue: Catalogue,
    progress: Sink,
    *,
    also_allowed: frozenset[str] = frozenset(),
    history: str = "",
    download_mib: int | None = None,
    ledger: RunLedger | None = None,
    sessions: SessionPool | None = None,
    clean: bool = True,
) -> Workbench:
    """Open the parts of this machine that a run needs. With ``clean``, remove the leftovers of killed runs first.

    ``history`` is a clone of the toolchain's repository that replaces the configured one. ``download_mib`` replaces
    the configured limit for environments with packages that a testcase requires. Runs in ``ledger`` are not repeated.
    ``sessions`` contains sandboxes that earlier workbenches left open.

    Raises:
        UserError: the requested sandbox does not work here, or with ``auto`` no sandbox does.
    """
    for leftover in remove_leftovers() if clean else ():
        progress.say(f"removed a leftover of a killed run: {leftover}")
    engine = _choose_engine(sandbox, progress)
    store = _open_store(progress, also_allowed, download_mib)
    return Workbench(
        engine=engine,
        store=store if isinstance(engine, Unprotected) else replace(store, trust_s=TRUST_S),
        catalogue=catalogue,
        progress=progress,
        run_id=make_name(),
        canaries=Canaries(store.root),
        driver=_find_driver(engine),
        history=history,
        ledger=ledger,
        sessions=sessions or SessionPool(),
    )


def _choose_engine(sandbox: str, progress: Sink) -> Engine:
    with progress.stage("choosing a sandbox"):
        engine = select_engine(sandbox)
    for loss in engine.limitations:
        progress.say(f"{engine.name} gives up: {loss}")
    return engine


def _open_store(progress: Sink, also_allowed: frozenset[str], download_mib: int | None) -> Store:
    config = read_config()
    if download_mib is not None:
        budget = msgspec.structs.replace(config.requirements, download_mib=float(download_mib))
        config = msgspec.structs.replace(config, requirements=budget)
    store = open_store(default_root(), say=progress.say, also_allowed=also_allowed, config=config)
    store = replace(store, uv=replace(store.uv, most_bytes=int(config.wheel_gib * 2**30)))
    if freed := store.keep_within(int(config.store_gib * 2**30)):
        progress.say(f"removed environments unused for longest: {freed / 2**20:.0f} MiB")
    return store


def _find_driver(engine: Engine) -> Driver | None:
    found = lavapipe.get_image_driver() if engine.own_system else lavapipe.find_driver(default_root())
    return None if isinstance(found, str) else found

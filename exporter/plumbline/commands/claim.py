"""``plumbline probe claim``: in a pod of Kubernetes, measure one volume from its claim to the first write, and leave
the result to the daemon of this node.

Exit codes: 0 measured, 1 it failed (the daemon shows it), 3 it could not be tried, or its result not be kept, 130
stopped.
"""

import argparse
import os
import threading

from plumbline.claims.api import Api, ApiError
from plumbline.claims.claim import ClaimRun
from plumbline.claims.claim_file import NAME, STORAGE_CLASS, ClaimState, add_result, check_writable, identity_of
from plumbline.commands.shared import INTERRUPTED, complain, positive_duration, say, set_by_signals
from plumbline.core.units import seconds_text
from plumbline.errors import ConfigError, PlumblineError, ProbeRefused
from plumbline.probes.run.result import Outcome

_DONE, _FAILED, _MISCONFIGURED = 0, 1, 3


def run(options: argparse.Namespace) -> int:
    stopping = threading.Event()
    try:
        if not NAME.fullmatch(options.name):
            raise ConfigError("NAME", "lower-case letters, digits and '-', at most 40", value=options.name)
        claim = ClaimRun(
            Api(os.environ, options.namespace, options.account),
            options.name,
            positive_duration(options.timeout, "--timeout"),
            stopping,
        )
        template, storage_class = claim.storage_class()
        if not STORAGE_CLASS.fullmatch(storage_class):
            raise ConfigError("storageClassName", "not a name of Kubernetes", value=storage_class)
        identity = identity_of(options.name, storage_class)
        interval_s = positive_duration(options.interval, "--interval")
        check_writable(options.storage_path, options.name)
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _MISCONFIGURED
    with set_by_signals(stopping):
        began = claim.clock()
        try:
            result = claim.run(template, identity)
        except ApiError as error:
            result = identity.result(
                tool_version="",
                started=began,
                duration=claim.clock() - began,
                outcome=Outcome.FAILURE,
                message=str(error)[:1000],
            )
        except ProbeRefused as refusal:
            complain(f"plumbline: {refusal}")
            return INTERRUPTED
    state = ClaimState(options.name, storage_class, interval_s, claim.timeout_s)
    try:
        add_result(options.storage_path, state, result)
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _MISCONFIGURED
    if result.outcome is not Outcome.SUCCESS:
        complain(f"plumbline: {identity.probe}: {result.outcome}: {result.message}")
        return _FAILED
    times = ", ".join(
        f"{operation.operation} {seconds_text(operation.latency['mean'])}" for operation in result.operations
    )
    say(f"{identity.probe}: {times}")
    return _DONE

"""Compute the results of models with ONNX's evaluator (``onnx.reference``).

The evaluator differs from ONNX's definitions for some models. The known faults are those of onnx 1.23.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})


NEWEST_MEANING = 13
"""The operator set that gave ``Softmax`` and others their current meaning."""


def translate_model(model: Any) -> Any:
    """Return the same model in the operator set `NEWEST_MEANING`, as ONNX translates it.

    Raises:
        Exception: ONNX cannot translate an operator. The types of its errors are not documented.
    """
    translated = importlib.import_module("onnx.version_converter").convert_version(model, NEWEST_MEANING)
    importlib.import_module("onnx").checker.check_model(translated)
    return translated


def departs_from_definition(model: Any, evaluator: Any) -> bool:
    """True if the evaluator computes a node of the model differently from ONNX's definition.

    - It pads pools wrongly: at the wrong end for ``SAME_LOWER``, or on another axis.
    - ``LRN`` sums over as many channels as the batch has elements.
    - It has one implementation of most operators, for their newest version. A model of an older operator set may mean
      something else: up to version 12, ``Softmax`` flattens all axes from ``axis`` on.
    """
    schemas = importlib.import_module("onnx.defs")
    versions = {one.domain: one.version for one in model.opset_import}
    for node, runner in zip(model.graph.node, evaluator.rt_nodes_, strict=True):
        if node.op_type in POOLS and any(one.name in ("pads", "auto_pad") for one in node.attribute):
            return True
        if node.op_type == "LRN":
            return True
        if re.search(r"_\d+$", type(runner).__name__):
            continue  # an implementation for the model's own version
        try:
            posted = schemas.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
            newest = schemas.get_schema(node.op_type, node.domain)
        except Exception:  # an operator of another domain, which onnx does not know
            continue
        if _list_defaults(posted).items() - _list_defaults(newest).items():
            return True
    return False


def _list_defaults(schema: Any) -> dict[str, str]:
    """Return the default values of the attributes that have one, as text."""
    texts = {name: str(attribute.default_value) for name, attribute in schema.attributes.items()}
    return {name: text for name, text in texts.items() if text}

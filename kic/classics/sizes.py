"""Lengths and amounts of which the closed forms are made, brought into plain numbers."""

from __future__ import annotations

from typing import Any

from kic.checks import assign, number
from kic.errors import ModelError


def check_lengths(owner: Any, *keys: str) -> None:
    """Bring fields of a frozen arm into plain numbers, all of them greater than zero.

    Raises
    ------
    ModelError
        For what is no finite number, or not positive; carries `key`.
    """
    who = type(owner).__name__
    for key in keys:
        value = number(who, key, getattr(owner, key), 0.0)
        if not value:
            raise ModelError(f"{who}: `{key}` is zero; a link of no length has no direction.", key=key)
        assign(owner, **{key: value})


def check_amounts(owner: Any, *keys: str) -> None:
    """Bring fields of a frozen arm into plain numbers, none of them below zero.

    Raises
    ------
    ModelError
        For what is no finite number, or negative; carries `key`.
    """
    for key in keys:
        assign(owner, **{key: number(type(owner).__name__, key, getattr(owner, key), 0.0)})

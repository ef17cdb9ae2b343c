"""Names and arguments of estimators and policies, checked against their signatures."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kvstats.document import Document, Place, dotted, shortened
from kvstats.errors import nearest_name

__all__ = ["check_arguments", "check_name"]

ELSEWHERE = ("log", "where", "by", "design")
"""Arguments of estimators and policies that have fields of their own in a registration."""


def check_arguments(
    document: Document,
    place: Place,
    name: str,
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
) -> None:
    """Check names and types of the arguments against the function's signature."""
    parameters = inspect.signature(function).parameters
    own = [parameter for parameter in parameters if parameter not in ELSEWHERE]
    kinds = typing.get_type_hints(function)
    for argument, value in arguments.items():
        at: Place = (*place, "arguments", argument)
        if argument not in own:
            remedy = nearest_name(argument, own) if own else f"{name} takes none"
            if argument in parameters:
                remedy = f"{argument!r} stands beside 'arguments', not in it"
            raise document.error(at, f"{name} has no argument {argument!r}", remedy)
        try:
            msgspec.convert(value, kinds[argument])
        except msgspec.ValidationError as error:
            fault = str(error).replace("`", "")
            raise document.error(
                at, f"{argument}={value!r} of {name}: {fault[0].lower() + fault[1:]}", "correct the value"
            ) from error
    for argument in own:
        if argument not in arguments and parameters[argument].default is inspect.Parameter.empty:
            raise document.error(place, f"{name} needs the argument {argument!r}", "add it to 'arguments'")


def check_name(document: Document, place: Place, kind: str, name: str, known: Mapping[str, object]) -> None:
    """Refuse a name that is not registered."""
    if name not in known:
        raise document.error(
            place, f"{dotted(place)} is no {kind}: {shortened(name)!r}", nearest_name(name, known)
        )

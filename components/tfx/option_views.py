"""Keeps Beam from parsing its options anew for each transform of a pipeline."""

import weakref
from typing import Any


def mend(pipeline_options: Any) -> None:
    """Makes `PipelineOptions.view_as` return the same view for the same class.

    Beam asks for a view at each transform, and a view builds a parser of its arguments: together a second
    of a run. All views share the values of their options, so one is as good as another.
    """
    stock = pipeline_options.PipelineOptions.view_as
    views: weakref.WeakKeyDictionary[Any, dict[type, Any]] = weakref.WeakKeyDictionary()

    def view_as(options: Any, cls: type) -> Any:
        found = views.setdefault(options, {})
        if cls not in found:
            found[cls] = stock(options, cls)
        return found[cls]

    pipeline_options.PipelineOptions.view_as = view_as

"""Timelines: when each operation ran, what devices did beside their operations, and traces for Perfetto."""

from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.timeline.timeline import Timeline

__all__ = ["SPAN_KINDS", "Spans", "Timeline"]

"""Timelines: the times of operations, the times of messages, ring hops and optimisers, and traces for Perfetto."""

from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.timeline.timeline import Timeline, computed_timeline

__all__ = ["SPAN_KINDS", "Spans", "Timeline", "computed_timeline"]

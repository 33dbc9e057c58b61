"""Timelines: the times of operations, messages, ring hops and optimisers. Traces for Perfetto."""

from hybridlab.timeline.breakdown import Breakdown, CriticalStep
from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.timeline.timeline import Timeline, computed_timeline

__all__ = ["SPAN_KINDS", "Breakdown", "CriticalStep", "Spans", "Timeline", "computed_timeline"]

"""What ran when: the timeline of a schedule, what devices do beside its operations, and the trace for a viewer."""

from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.timeline.timeline import Timeline

__all__ = ["SPAN_KINDS", "Spans", "Timeline"]

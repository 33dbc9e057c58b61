"""Schedules made for given times, and the ranking of all schedules for them."""

from hybridlab.automatic.schedule_for import ScheduleForTimes, schedule_for

__all__ = ["ScheduleForTimes", "schedule_for"]

"""A search for the best schedule for given times of operations, and a ranking of all schedules for these times."""

from hybridlab.automatic.for_times import ScheduleForTimes, schedule_for
from hybridlab.automatic.ranking import Ranked, Ranking, rank

__all__ = ["Ranked", "Ranking", "ScheduleForTimes", "rank", "schedule_for"]

"""A search for the best schedule for given times, a ranking of all schedules for these times, and the best cut of a model into stages."""

from hybridlab.automatic.cut import BestCut, best_cut
from hybridlab.automatic.for_times import ScheduleForTimes, schedule_for
from hybridlab.automatic.ranking import Ranked, Ranking, rank

__all__ = ["BestCut", "Ranked", "Ranking", "ScheduleForTimes", "best_cut", "rank", "schedule_for"]

"""Whether a Prometheus keeps its samples as long as a review or a forecast needs, and which setting to change."""

import math

from plumbline.core.units import duration_text
from plumbline.core.words import DAY_S

# the longest slope of the rules' forecasts needs two thirds of its 30 days (alerts/config/capacity.libsonnet: slopes)
FORECAST_S = 20 * DAY_S
# what is advised for it: the slope itself, and some days in which Prometheus removes nothing
FORECAST_DAYS = 35
# after a review's period there is time to write it
SLACK_DAYS = 14


def forecast_note(retention_s: float | None) -> str:
    """Empty where it is long enough or unknown."""
    if retention_s is None or retention_s >= FORECAST_S:
        return ""
    return (
        f"this Prometheus keeps {duration_text(retention_s)}: there is no growth over 30 days, so forecasts are from 3"
        f" and 14 days at most; set --storage.tsdb.retention.time={FORECAST_DAYS}d or more"
    )


def period_note(retention_s: float | None, *, start_s: float, now_s: float) -> str:
    """Empty where all of the period since ``start_s`` may still be there, or where nobody knows."""
    if retention_s is None or now_s - start_s <= retention_s:
        return ""
    days = math.ceil((now_s - start_s) / DAY_S) + SLACK_DAYS
    return (
        f"This Prometheus keeps {duration_text(retention_s)}, less than reaches back to the first day: what is older"
        f" was not observed. For a review of this length set --storage.tsdb.retention.time={days}d or more."
    )

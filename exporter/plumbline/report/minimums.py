"""How much data a figure of a review needs. With less the review says so, and nothing else about that figure."""

from plumbline.core.words import DAY_S

# a level: two days may be just a weekend. A change has one before and one after it.
LEVEL_DAYS = 3
# a verdict about a layer: each hour of a day has its load
JUDGED_S = DAY_S
# alerts for each 1,000 hosts and week: fewer would make hundreds of one alert
HOST_WEEKS = 10

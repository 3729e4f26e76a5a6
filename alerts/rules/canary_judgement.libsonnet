// Which canaries are out of line: what their limit is, and how long they have been beyond it.
//
//   season   = this hour's median of the seven days before; the highest of last week's hours around now, where that is
//              above it by more than the spread
//   job      = how much more than the season a job makes of this hour, by what it made of it last week, the week before or
//              yesterday. Of yesterday only what is over: a fault that lasts must not excuse itself
//   expected = the season times the job; its day is at most what is tolerated, so that no slow regression excuses itself;
//              without history the whole tolerance, so that a new canary is judged by its baseline alone, more widely
//   tolerated = the baseline's tolerance; where all hosts serve clearly more than when it was recorded, times what that
//              makes of the median host's day: one fact about the baseline (`canary_outgrown`), not one about each canary
//   spread   = how far the series strays from its season, over a week; until there is a day of it, what the baseline
//              was recorded with. Of a page: how far the median host does, because several have to agree
//   limit    = expected x the larger of `beyond` and (1 + spread) ^ spreads; at least the tolerance, at most the larger of
//              `cap` and expected x `beyond`; but never so low that it is less than `floorSeconds` above the baseline
//   near     = half of the way from what is expected to the page's limit
//
// No rule here reads its own past result (as a CUSUM would): both Prometheus servers of a pair, one after a restart
// and one with backfilled rules come to the same figures.
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local high = config.alerts.PlumblineCanaryLatencyHigh,
  local burn = config.alerts.PlumblineCanaryBudgetBurn.ticket,
  local share = 'plumbline:canary_slow_operations:ratio',
  local likeness = promql.join(promql.clusterLabels(config) + promql.likeness),
  local labels = promql.labels(config) {
    ratio: 'plumbline:degradation_fast:ratio{statistic="p50"}',
    tolerated: 'max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio)' % self,
    clusters: likeness,
    hosts: promql.join(config.instanceLabels + promql.likeness),
    cluster: promql.join(promql.clusterLabels(config)),
    clientPattern: std.join('|', config.blame.clientLayers),
  } + canary,

  local expr = over(config),
  // Of hours and days; a minute's gap says nothing there.
  local seen(series, span) = promql.seen(config, series, span, config.seen.slots.slow),

  local offsets = expr.past('plumbline:canary_hour:ratio offset %s'),

  // The highest around this moment so long ago, if `condition` holds.
  local around(series, job, offset, condition='') =
    'label_replace(max_over_time(%s[%s] offset %s)%s, "week", "%s", "", "")' % [series, job.window, offset, condition, offset],

  // "… or …": of the weeks before and of yesterday, told apart by `week`. `over`: what is asked of yesterday's besides.
  local past(series, job, over) = std.join(
    '\nor\n', [around(series, job, offset) for offset in job.offsets] + [around(series, job, job.yesterday, over)]
  ),

  // Half the distance between two quantiles of a week, as a ratio, as soon as there is a day of it.
  local spread(residual, place) = |||
    sqrt(
      quantile_over_time(%(high)g, %(residual)s[%(spreadWindow)s])
      /
      quantile_over_time(%(low)g, %(residual)s[%(spreadWindow)s])
    )
    - 1
    and on (%(place)s)
    %(residual)s offset %(dayWindow)s
  ||| % (labels + canary.spreadQuantiles { residual: residual, place: place }),

  local least = { page: canary.beyond, ticket: canary.ticketBeyond },

  local limit(verdict) = {
    record: 'plumbline:canary_limit:ratio',
    expr: |||
      max by (%(judged)s) (
        clamp_max(
          %(raw)s,
          %(cap)g
        )
        or
        label_replace(%(floor)s, "limit", "floor", "", "")
        or
        label_replace(plumbline:canary_expected:ratio * %(least)g, "limit", "expected", "", "")
      )
    ||| % (labels { least: least[verdict], raw: promql.nested(promql.nested(rawLimit(verdict))), floor: promql.nested(floor) }),
    labels: { verdict: verdict },
  },

  // The least ratio that is above the least number of seconds.
  local floor = std.rstripChars(|||
    0 * plumbline:canary_expected:ratio
    + on (%(tolerance)s) group_left ()
    plumbline:baseline_in_force:floor_ratio{statistic="p50"}
  ||| % labels, '\n'),

  // Before it is capped: at least the tolerance. Where there is no spread, `beyond` alone.
  local rawLimit(verdict) = |||
    (
      plumbline:canary_expected:ratio
      * on (%(place)s) group_left ()
      clamp_min((1 + %(spread)s) ^ %(spreads)g, %(least)g)
      or on (%(judged)s)
      plumbline:canary_expected:ratio * %(least)g
    )
    > on (%(tolerance)s) group_left ()
    %(tolerated)s
    or on (%(judged)s)
    0 * plumbline:canary_expected:ratio
    + on (%(tolerance)s) group_left ()
    %(tolerated)s
  ||| % (labels + {
           page: { least: least.page, place: likeness, spread: 'plumbline:fleet_spread:ratio' },
           ticket: { least: least.ticket, place: labels.judged, spread: 'plumbline:canary_spread:ratio' },
         }[verdict]),

  // At this moment: 1.
  local beyond(verdict, limit) = {
    record: 'plumbline:canary_beyond:bool',
    expr: |||
      %(ratio)s
      > bool on (%(judged)s)
      max by (%(judged)s) (%(limit)s)
    ||| % (labels { limit: limit }),
    labels: { verdict: verdict },
  },

  // What makes a ticket, by the span over which it shows. Load in most of the span explains what is below the cap.
  local slow(span, condition, recovery, capped='') = {
    record: 'plumbline:canary_slow:info',
    expr: |||
      group by (%(judged)s) (
        %(condition)s
        unless on (%(judged)s)
        (count_over_time(plumbline:canary_busy:info[%(span)s:1m]) >= %(busyMinutes)d)%(capped)s
      )
      unless on (%(cluster)s)
      (max_over_time(plumbline:recovery:bool[%(recovery)s]) == 1)
    ||| % (labels {
             condition: promql.nested(condition),
             span: span,
             busyMinutes: std.floor(canary.busyShare * promql.seconds(span) / promql.seconds('1m')),
             recovery: recovery,
             capped: if capped == '' then '' else promql.nested('\nor\n' + capped),
           }),
    labels: { span: span },
  },

  prometheusRules+:: {
    groups+: [{
      // One group, because groups are evaluated at moments of their own: each that a figure passes on its way costs up
      // to an interval.
      name: 'plumbline-judgement.rules',
      interval: canary.interval,
      rules: [
        {
          record: 'plumbline:canary_latency_fast:seconds',
          expr: expr.quantile(0.5, canary.fastWindow),
          labels: { statistic: 'p50' },
        },
        {
          record: 'plumbline:degradation_fast:ratio',
          expr: expr.ratio(expr.enough('_fast', canary.fastWindow, canary.minimumOperations.fast)),
        },
        {
          record: 'plumbline:canary_attempts_fast:ops_per_second',
          expr: expr.attempted,
        },
        {
          record: 'plumbline:canary_slow_operations:ratio',
          expr: expr.slowShare,
        },
        {
          record: 'plumbline:canary_failed_operations:ratio',
          expr: expr.failedShare,
        },
        {
          // A catastrophe at this moment. A device that fails serves less, not more: what serves clearly more has a burst of work,
          // and one that lasts meets the limits.
          record: 'plumbline:canary_extreme:ratio',
          expr: |||
            plumbline:degradation_fast:ratio{statistic="p50"} >= %(ratio)g
            unless on (%(judged)s)
            (
              plumbline:degradation_fast:ratio{statistic="p50"} - 1
              < on (%(tolerance)s) group_left ()
              %(floorSeconds)g / min by (%(tolerance)s) (plumbline:baseline_in_force:latency_seconds{statistic="p50"})
            )
            unless on (%(series)s)
            max_over_time(plumbline:canary_load:ratio[%(loadWindow)s]) >= %(loadFactor)g
            unless on (%(judged)s)
            plumbline:degradation_fast:ratio{statistic="p50"}
            <= on (%(judged)s)
            %(usual)g * plumbline:canary_usual_peak:ratio
            unless on (%(judged)s)
            plumbline:degradation_fast:ratio{statistic="p50"}
            < on (%(judged)s)
            %(ratio)g * plumbline:canary_job:ratio
          ||| % (labels + config.alerts.PlumblineCanaryLatencyExtreme { loadFactor: config.load.factor }),
        },
        beyond('page', 'plumbline:canary_limit:ratio{verdict="page"}'),
        beyond('near', 'plumbline:canary_near:ratio'),
        {
          // Independent parts, not canaries: two hosts that measure one OSD, and two canaries of one host, are one. The median of
          // each, so that one odd device of a host neither makes nor hides a verdict about the layer. Too few parts, or hosts that
          // look, agree about nothing.
          record: 'plumbline:fleet_beyond:ratio',
          expr: |||
            avg by (%(clusters)s, verdict) (
              quantile by (%(parts)s, verdict) (
                0.5,
                %(beyond)s
              ) > bool 0.5
            )
            and on (%(clusters)s)
            (
              count by (%(clusters)s) (
                group by (%(parts)s) (
                  %(beyond)s
                )
              ) >= %(client)d
            )
            and on (%(clusters)s)
            (
              count by (%(clusters)s) (
                group by (%(hosts)s) (plumbline:canary_beyond:bool)
              ) >= %(other)d
              or
              count by (%(clusters)s) (
                group by (%(hosts)s) (plumbline:canary_beyond:bool{layer=~"%(clientPattern)s"})
              ) >= %(client)d
            )
          ||| % (labels + canary.minimumHosts {
                   parts: likeness + ', part',
                   beyond: promql.nested(promql.nested(promql.nested(
                     std.rstripChars(expr.ofPart('max without (source, profile) (plumbline:canary_beyond:bool)'), '\n')
                   ))),
                 }),
        },
      ],
    }, {
      // Slowly, because it looks back a week and hardly moves; less than Prometheus's lookback apart.
      name: 'plumbline-season.rules',
      interval: config.paces.drawn,
      rules: [
        {
          // A median of medians: hiccups and what lasts less than half an hour leave no trace.
          record: 'plumbline:canary_hour:ratio',
          expr: |||
            quantile_over_time(0.5, %(ratio)s[%(seasonWindow)s])
            and on (%(judged)s)
            %(ratio)s offset %(seasonWindow)s
            and on (%(judged)s)
            %(seen)s
          ||| % (labels { seen: seen(labels.ratio, canary.seasonWindow) }),
        },
        {
          record: 'plumbline:canary_season:ratio',
          expr: |||
            quantile without (season) (
              0.5,
              %(offsets)s
            )
          ||| % (labels { offsets: std.strReplace(offsets, '\n', '\n  ') }),
        },
        {
          // The highest minute of an hour.
          record: 'plumbline:canary_peak:ratio',
          expr: 'max_over_time(%s[%s])' % [labels.ratio, canary.seasonWindow],
        },
        {
          // What most of a week's days reach within half an hour of this moment: a backup, or whatever begins by the clock.
          record: 'plumbline:canary_usual_peak:ratio',
          expr: |||
            quantile without (season) (
              0.5,
              %(peaks)s
            )
          ||| % { peaks: promql.nested(expr.past('plumbline:canary_peak:ratio offset %s')) },
        },
        {
          // What no season explains.
          record: 'plumbline:canary_residual:ratio',
          expr: |||
            %(ratio)s
            / on (%(judged)s)
            plumbline:canary_season:ratio
          ||| % labels,
        },
        {
          record: 'plumbline:canary_spread:ratio',
          expr: |||
            %(spread)s
            or on (%(judged)s)
            0 * max by (%(judged)s) (%(ratio)s)
            + on (%(tolerance)s) group_left ()
            max by (%(tolerance)s) (plumbline_baseline_spread_ratio{span="%(baselineSpan)s"})
          ||| % (labels { spread: std.rstripChars(spread('plumbline:canary_residual:ratio', labels.judged), '\n') }),
        },
        {
          // The median host's: what hosts do by themselves is hardly in it, what they have in common is.
          record: 'plumbline:fleet_residual:ratio',
          expr: |||
            quantile by (%(clusters)s) (
              0.5,
              quantile by (%(hosts)s) (0.5, plumbline:canary_residual:ratio)
            )
          ||| % labels,
        },
        {
          record: 'plumbline:fleet_spread:ratio',
          expr: |||
            %(spread)s
            or on (%(clusters)s)
            quantile by (%(clusters)s) (0.5, plumbline:canary_spread:ratio)
          ||| % (labels { spread: std.rstripChars(spread('plumbline:fleet_residual:ratio', likeness), '\n') }),
        },
        {
          // What the slowest fifth of the hour reaches: a job of a quarter of an hour is in no median.
          record: 'plumbline:canary_upper:ratio',
          expr: 'quantile_over_time(%g, %s[%s])' % [canary.job.quantile, labels.ratio, canary.seasonWindow],
        },
        {
          // The median hour: no job is in it, and no night.
          record: 'plumbline:canary_day:ratio',
          expr: |||
            quantile_over_time(0.5, plumbline:canary_hour:ratio[%(dayWindow)s])
            and on (%(judged)s)
            plumbline:canary_hour:ratio offset %(dayWindow)s
            and on (%(judged)s)
            %(seen)s
          ||| % (labels { seen: seen('plumbline:canary_hour:ratio', canary.dayWindow) }),
        },
        {
          record: 'plumbline:canary_job:ratio',
          expr: |||
            max without (week) (
              %(past)s
            )
            / on (%(judged)s)
            plumbline:canary_season:ratio
            > on (%(judged)s)
            clamp_min((1 + plumbline:canary_spread:ratio) ^ %(spreads)g, %(least)g)
            or on (%(judged)s)
            0 * max by (%(judged)s) (plumbline:canary_season:ratio) + 1
          ||| % (labels + canary.job {
                   past: promql.nested(past(
                     'plumbline:canary_upper:ratio',
                     canary.job,
                     ' and on (%s) (plumbline:canary_day:ratio <= on (%s) %g * avg_over_time(plumbline:canary_season:ratio[%s]))'
                     % [labels.judged, labels.judged, canary.job.least, canary.dayWindow]
                   )),
                 }),
        },
      ],
    }, {
      // A group of its own, because Mimir takes no more than 20 rules in one.
      name: 'plumbline-expected.rules',
      interval: config.paces.drawn,
      rules: [
        {
          // The median host's day (of the first day its hour), where most canaries that know their load serve clearly more than at
          // the recording. A cluster's other layers know no load of their own.
          record: 'plumbline:fleet_outgrown:ratio',
          expr: |||
            quantile by (%(clusters)s) (
              0.5,
              quantile by (%(hosts)s) (0.5, plumbline:canary_day:ratio or on (%(judged)s) plumbline:canary_hour:ratio)
            ) > %(hoursRatio)g
            and on (%(cluster)s)
            quantile by (%(cluster)s) (
              0.5,
              plumbline:canary_load_growth:ratio
            ) >= %(factor)g
          ||| % (labels + high { factor: config.load.factor }),
        },
        {
          record: 'plumbline:canary_tolerated:ratio',
          expr: |||
            (0 * max by (%(judged)s) (plumbline:canary_hour:ratio) + 1)
            * on (%(tolerance)s) group_left ()
            %(tolerated)s
            * on (%(clusters)s) group_left ()
            plumbline:fleet_outgrown:ratio
            or on (%(judged)s)
            0 * max by (%(judged)s) (plumbline:canary_hour:ratio)
            + on (%(tolerance)s) group_left ()
            %(tolerated)s
          ||| % labels,
        },
        {
          record: 'plumbline:canary_expected:ratio',
          expr: |||
            clamp_min(
              (
                max_over_time(plumbline:canary_hour:ratio[%(seasonWindow)s] offset %(weekOffset)s)
                > on (%(judged)s)
                plumbline:canary_season:ratio
                * on (%(judged)s)
                (1 + plumbline:canary_spread:ratio)
                unless on (%(judged)s)
                plumbline:canary_job:ratio > 1
                or on (%(judged)s)
                plumbline:canary_season:ratio
                * on (%(judged)s)
                plumbline:canary_job:ratio
              )
              / on (%(judged)s)
              clamp_min(
                avg_over_time(plumbline:canary_season:ratio[%(dayWindow)s])
                / on (%(judged)s)
                plumbline:canary_tolerated:ratio,
                1
              ),
              %(leastSeason)g
            )
            or on (%(judged)s)
            plumbline:canary_tolerated:ratio
            or on (%(judged)s)
            0 * max by (%(judged)s) (%(ratio)s)
            + on (%(tolerance)s) group_left ()
            %(tolerated)s
          ||| % labels,
        },
        limit('page'),
        limit('ticket'),
        {
          record: 'plumbline:canary_near:ratio',
          expr: |||
            (
              plumbline:canary_expected:ratio
              + on (%(judged)s)
              plumbline:canary_limit:ratio{verdict="page"}
            )
            / 2
          ||| % labels,
        },
        {
          // How much higher the limit would be than it may.
          record: 'plumbline:canary_restless:ratio',
          expr: |||
            %(raw)s
            > %(cap)g
            unless on (%(judged)s)
            plumbline:canary_expected:ratio * %(ticketBeyond)g >= %(cap)g
          ||| % (labels { raw: '(\n  %s\n)' % promql.nested(rawLimit('ticket')) }),
        },
        {
          // The last hours against what was expected in their middles.
          record: 'plumbline:canary_drift:ratio',
          expr: |||
            avg_over_time(plumbline:canary_hour:ratio[%(driftSpan)s])
            / on (%(judged)s)
            avg_over_time(plumbline:canary_expected:ratio[%(driftSpan)s] offset %(seasonDelay)s)
            and on (%(judged)s)
            plumbline:canary_hour:ratio offset %(driftSpan)s
            and on (%(judged)s)
            %(seen)s
          ||| % (labels + high { seen: seen('plumbline:canary_hour:ratio', high.driftSpan) }),
        },
        {
          // What a drift is judged by: how far the last hours stray in a week.
          record: 'plumbline:canary_drift_limit:ratio',
          expr: |||
            (
              %(spread)s
              + 1
            ) ^ %(driftSpreads)g
            or on (%(judged)s)
            (1 + plumbline:canary_spread:ratio) ^ %(driftFirstSpreads)g
          ||| % (labels + high {
                   spread: promql.nested('(\n  %s\n)' % promql.nested(spread('plumbline:canary_drift:ratio', labels.judged))),
                 }),
        },
        {
          // Steady: a hiccup makes everything slow for minutes, but not for half of an hour.
          record: 'plumbline:canary_slow_level:ratio',
          expr: |||
            quantile_over_time(0.5, %(share)s[%(span)s])
            and
            %(share)s offset %(span)s
            and
            %(seen)s
          ||| % (burn { share: share, seen: seen(share, burn.span) }),
          labels: { window: burn.span },
        },
        {
          // In bursts: the mean.
          record: 'plumbline:canary_slow_level:ratio',
          expr: |||
            avg_over_time(%(share)s[%(long)s])
            and
            %(seen)s
          ||| % (burn { share: share, seen: seen(share, burn.long) }),
          labels: { window: burn.long },
        },
        {
          // That of the slowest hours of the week before today, and of a job around this moment of the weeks before; around
          // this moment of yesterday, if that is more than most of the hours since.
          record: 'plumbline:canary_slow_usual:ratio',
          expr: |||
            max without (week) (
              label_replace(
                quantile_over_time(%(quantile)g, plumbline:canary_slow_level:ratio[%(week)s] offset %(day)s),
                "week", "last", "", ""
              )
              or
              %(past)s
            )
          ||| % {
            quantile: canary.usualQuantile,
            week: canary.spreadWindow,
            day: canary.dayWindow,
            past: promql.nested(past(
              'plumbline:canary_slow_level:ratio',
              canary.job,
              ' > %g * quantile_over_time(0.5, plumbline:canary_slow_level:ratio[%s])' % [config.alerts.PlumblineCanaryBudgetBurn.page.usual, canary.dayWindow]
            )),
          },
        },
        slow(
          high.span,
          |||
            quantile_over_time(%(quantile)g, %(ratio)s[%(span)s])
            > on (%(judged)s)
            max by (%(judged)s) (plumbline:canary_limit:ratio{verdict="ticket"})
            and on (%(judged)s)
            %(ratio)s offset %(span)s
            and on (%(judged)s)
            %(seen)s
          ||| % (labels + high { seen: seen(labels.ratio, high.span) }),
          canary.recoveryLongWindow,
          |||
            min_over_time(%(ratio)s[%(capWhole)s]) > %(cap)g
            > on (%(judged)s)
            max by (%(judged)s) (plumbline:canary_limit:ratio{verdict="ticket"})
            and on (%(judged)s)
            %(ratio)s offset %(capSpan)s
            and on (%(judged)s)
            %(seen)s
          ||| % (labels + high {
                   capWhole: expr.whole(high.capSpan),
                   seen: promql.seen(config, labels.ratio, high.capSpan, config.seen.slots.fast),
                 })
        ),
        slow(
          high.driftSpan,
          |||
            plumbline:canary_drift:ratio
            > on (%(judged)s)
            (
              clamp_min(plumbline:canary_drift_limit:ratio, %(driftRatio)g)
              or on (%(judged)s)
              0 * plumbline:canary_drift:ratio + %(driftRatio)g
            )
            unless on (%(judged)s)
            (
              avg_over_time(plumbline:canary_hour:ratio[%(driftSpan)s])
              <= on (%(judged)s)
              avg_over_time(plumbline:canary_hour:ratio[%(driftSpan)s] offset %(driftReturns)s)
              * on (%(judged)s)
              (1 + plumbline:canary_spread:ratio)
            )
          ||| % (labels + high),
          canary.recoveryDriftWindow
        ),
        slow(
          canary.dayWindow,
          |||
            plumbline:canary_day:ratio
            > on (%(judged)s)
            plumbline:canary_tolerated:ratio
            unless on (%(judged)s)
            plumbline:canary_day:ratio <= on (%(judged)s) plumbline:canary_drift_limit:ratio
            unless on (%(judged)s)
            plumbline:canary_hour:ratio
            <= on (%(tolerance)s) group_left ()
            plumbline:baseline_in_force:floor_ratio{statistic="p50"}
            and on (%(judged)s)
            quantile_over_time(0.5, plumbline:canary_hour:ratio[%(hoursWindow)s]) > %(hoursRatio)g
            and on (%(judged)s)
            %(seenHours)s
          ||| % (labels + high {
                   seenHours: seen('plumbline:canary_hour:ratio', high.hoursWindow),
                 }),
          canary.dayWindow
        ),
      ],
    }],
  },
}

// Which canaries are out of line: what their limit is, and how long they have been beyond it.
//
//   season   = this hour's median of the seven days before; the highest of last week's hours around now, where that is
//              above it by more than the spread
//   expected = the season; its day is at most the baseline's tolerance, so that no slow regression excuses itself;
//              without history the whole tolerance, so that a new canary is judged by its baseline alone, more widely
//   spread   = how far the series strays from its season, over a week; until there is a day of it, what the baseline
//              was recorded with. Of a page: how far the median host does, because several have to agree
//   limit    = expected x the larger of `beyond` and (1 + spread) ^ spreads; at least the tolerance, at most `cap`; but
//              never so low that it is less than `floorSeconds` above the baseline
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
      )
    ||| % (labels { raw: promql.nested(promql.nested(rawLimit(verdict))), floor: promql.nested(floor) }),
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
           page: { least: canary.beyond, place: likeness, spread: 'plumbline:fleet_spread:ratio' },
           ticket: { least: canary.ticketBeyond, place: labels.judged, spread: 'plumbline:canary_spread:ratio' },
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
          record: 'plumbline:canary_expected:ratio',
          expr: |||
            clamp_min(
              (
                max_over_time(plumbline:canary_hour:ratio[%(seasonWindow)s] offset %(weekOffset)s)
                > on (%(judged)s)
                plumbline:canary_season:ratio
                * on (%(judged)s)
                (1 + plumbline:canary_spread:ratio)
                or on (%(judged)s)
                plumbline:canary_season:ratio
              )
              / on (%(judged)s)
              clamp_min(
                avg_over_time(plumbline:canary_season:ratio[%(dayWindow)s])
                / on (%(tolerance)s) group_left ()
                %(tolerated)s,
                1
              ),
              %(leastSeason)g
            )
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
          // That of the slowest hours of the week before today.
          record: 'plumbline:canary_slow_usual:ratio',
          expr: 'quantile_over_time(%g, plumbline:canary_slow_level:ratio[%s] offset %s)'
                % [canary.usualQuantile, canary.spreadWindow, canary.dayWindow],
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
            unless on (%(judged)s)
            %(ratio)s <= on (%(judged)s) max by (%(judged)s) (plumbline:canary_limit:ratio{verdict="ticket"})
            and
            %(ratio)s offset %(capSpan)s
            and
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
              clamp_min((1 + plumbline:canary_spread:ratio) ^ %(driftSpreads)g, %(driftRatio)g)
              or on (%(judged)s)
              0 * plumbline:canary_drift:ratio + %(driftRatio)g
            )
          ||| % (labels + high),
          canary.recoveryDriftWindow
        ),
        slow(
          canary.dayWindow,
          |||
            avg_over_time(plumbline:canary_hour:ratio[%(dayWindow)s])
            > on (%(tolerance)s) group_left ()
            %(tolerated)s
            unless on (%(judged)s)
            plumbline:canary_hour:ratio
            <= on (%(tolerance)s) group_left ()
            plumbline:baseline_in_force:floor_ratio{statistic="p50"}
            and on (%(judged)s)
            quantile_over_time(0.5, plumbline:canary_hour:ratio[%(hoursWindow)s]) > %(hoursRatio)g
            and on (%(judged)s)
            plumbline:canary_hour:ratio offset %(dayWindow)s
            and on (%(judged)s)
            %(seenDay)s
            and on (%(judged)s)
            %(seenHours)s
          ||| % (labels + high {
                   seenDay: seen('plumbline:canary_hour:ratio', canary.dayWindow),
                   seenHours: seen('plumbline:canary_hour:ratio', high.hoursWindow),
                 }),
          canary.dayWindow
        ),
      ],
    }],
  },
}

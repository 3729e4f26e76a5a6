// Which canaries are out of line: what their limit is, and how long they have been beyond it.
//
//   season   = this hour's median of the seven days before; last week's, where that differs by more than the spread
//   expected = the season; its day is at most the baseline's tolerance, so that no slow regression excuses itself;
//              without history the whole tolerance, so that a new canary is judged by its baseline alone, more widely
//   spread   = how far the series strays from its season, over a week; until there is a day of it, what the baseline
//              was recorded with
//   limit    = expected x the larger of `beyond` and 1 + spreads x spread; at least the tolerance, at most `cap`
//
// No rule here reads its own past result (as a CUSUM would): both Prometheus servers of a pair, one after a restart
// and one with backfilled rules come to the same figures.
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local high = config.alerts.PlumblineCanaryLatencyHigh,
  local fleet = config.alerts.PlumblineFleetLatencyHigh,
  local likeness = promql.join(promql.clusterLabels(config) + promql.likeness),
  local labels = promql.labels(config) {
    ratio: 'plumbline:degradation_fast:ratio{statistic="p50"}',
    tolerance: promql.join(config.instanceLabels + promql.likeness + ['source', 'profile']),
    tolerated: 'max by (%s) (plumbline:baseline_in_force:tolerance_ratio)' % self.tolerance,
    clusters: likeness,
    hosts: promql.join(config.instanceLabels + promql.likeness),
    cluster: promql.join(promql.clusterLabels(config)),
    clientPattern: std.join('|', canary.clientLayers),
    fleetSpan: fleet.span,
    fleetWhole: expr.whole(fleet.span),
  } + canary,

  local expr = over(config),

  local offsets = std.join('\nor\n', [
    'label_replace(plumbline:canary_hour:ratio offset %s, "season", "%s", "", "")' % [offset, offset]
    for offset in canary.seasonOffsets
  ]),

  local limit(verdict) = {
    record: 'plumbline:canary_limit:ratio',
    // Where there is no spread, `beyond` alone.
    expr: |||
      clamp_max(
        %(raw)s,
        %(cap)g
      )
    ||| % (labels { raw: promql.nested(rawLimit(verdict)) }),
    labels: { verdict: verdict },
  },

  // Before it is capped: at least the tolerance.
  local rawLimit(verdict) = |||
    (
      plumbline:canary_expected:ratio
      * on (%(judged)s)
      clamp_min(1 + %(spreads)g * plumbline:canary_spread:ratio, %(beyond)g)
      or on (%(judged)s)
      plumbline:canary_expected:ratio * %(beyond)g
    )
    > on (%(tolerance)s) group_left ()
    %(tolerated)s
    or on (%(judged)s)
    0 * plumbline:canary_expected:ratio
    + on (%(tolerance)s) group_left ()
    %(tolerated)s
  ||| % (labels { spreads: canary.spreads[verdict] }),

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
          // Beyond its limit for the whole span, without a pause: 1. The limit is today's: it hardly moves in minutes.
          record: 'plumbline:canary_beyond:bool',
          expr: |||
            min_over_time(%(ratio)s[%(fleetWhole)s])
            > bool on (%(judged)s)
            max by (%(judged)s) (plumbline:canary_limit:ratio{verdict="page"})
            and on (%(judged)s)
            %(ratio)s offset %(fleetSpan)s
            and on (%(judged)s)
            %(ratio)s
          ||| % labels,
        },
        {
          // Hosts, not canaries: two canaries of one host share its hiccups. The median, so that one odd device of
          // a host neither makes nor hides a verdict about the layer. Too few hosts agree about nothing.
          record: 'plumbline:fleet_beyond:ratio',
          expr: |||
            avg by (%(clusters)s) (
              quantile by (%(hosts)s) (0.5, plumbline:canary_beyond:bool) > bool 0.5
            )
            and
            (
              count by (%(clusters)s) (
                group by (%(hosts)s) (plumbline:canary_beyond:bool)
              ) >= %(other)d
              or
              count by (%(clusters)s) (
                group by (%(hosts)s) (plumbline:canary_beyond:bool{layer=~"%(clientPattern)s"})
              ) >= %(client)d
            )
          ||| % (labels + canary.minimumHosts),
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
          ||| % labels,
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
            sqrt(
              quantile_over_time(%(high)g, plumbline:canary_residual:ratio[%(spreadWindow)s])
              /
              quantile_over_time(%(low)g, plumbline:canary_residual:ratio[%(spreadWindow)s])
            )
            - 1
            and on (%(judged)s)
            plumbline:canary_residual:ratio offset %(dayWindow)s
            or on (%(judged)s)
            0 * max by (%(judged)s) (%(ratio)s)
            + on (%(tolerance)s) group_left ()
            max by (%(tolerance)s) (plumbline_baseline_spread_ratio{span="%(baselineSpan)s"})
          ||| % (labels + canary.spreadQuantiles),
        },
        {
          record: 'plumbline:canary_expected:ratio',
          expr: |||
            clamp_min(
              (
                plumbline:canary_hour:ratio offset %(weekOffset)s
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
          // How much higher the limit would be than it may.
          record: 'plumbline:canary_restless:ratio',
          expr: |||
            %(raw)s
            > %(cap)g
          ||| % (labels { raw: '(\n  %s\n)' % promql.nested(rawLimit('page')) }),
        },
        {
          // The hour against what was expected in its middle.
          record: 'plumbline:canary_hour_excess:ratio',
          expr: |||
            plumbline:canary_hour:ratio
            / on (%(judged)s)
            plumbline:canary_expected:ratio offset %(seasonDelay)s
          ||| % labels,
        },
        slow(
          high.span,
          |||
            quantile_over_time(%(quantile)g, %(ratio)s[%(span)s])
            > on (%(judged)s)
            max by (%(judged)s) (plumbline:canary_limit:ratio{verdict="ticket"})
            and on (%(judged)s)
            %(ratio)s offset %(span)s
          ||| % (labels + high),
          canary.recoveryLongWindow,
          |||
            min_over_time(%(ratio)s[%(capWhole)s]) > %(cap)g
            and
            %(ratio)s offset %(capSpan)s
          ||| % (labels + high { capWhole: expr.whole(high.capSpan) })
        ),
        slow(
          high.driftSpan,
          |||
            quantile_over_time(0.5, plumbline:canary_hour_excess:ratio[%(driftSpan)s])
            > on (%(judged)s)
            (
              clamp_min(1 + %(driftSpreads)g * plumbline:canary_spread:ratio, %(driftRatio)g)
              or on (%(judged)s)
              0 * plumbline:canary_expected:ratio + %(driftRatio)g
            )
            and on (%(judged)s)
            plumbline:canary_hour_excess:ratio offset %(driftSpan)s
          ||| % (labels + high),
          canary.recoveryDriftWindow
        ),
        slow(
          canary.dayWindow,
          |||
            avg_over_time(plumbline:canary_hour:ratio[%(dayWindow)s])
            > on (%(tolerance)s) group_left ()
            %(tolerated)s
            and on (%(judged)s)
            quantile_over_time(0.5, plumbline:canary_hour:ratio[%(hoursWindow)s]) > %(hoursRatio)g
            and on (%(judged)s)
            plumbline:canary_hour:ratio offset %(dayWindow)s
          ||| % (labels + high),
          canary.dayWindow
        ),
      ],
    }],
  },
}

// The canary against what is expected of it: how long it stays beyond, for one canary and for the hosts of a cluster;
// the catastrophe in one window; the tail as a budget.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local canary = config.canary,
  local high = config.alerts.PlumblineCanaryLatencyHigh,
  local fleet = config.alerts.PlumblineFleetLatencyHigh,
  local extreme = config.alerts.PlumblineCanaryLatencyExtreme,
  local burn = config.alerts.PlumblineCanaryBudgetBurn,
  local latency = { signal: 'latency' },
  local labels = promql.labels(config) {
    cluster: promql.join(promql.clusterLabels(config)),
    beyond: canary.beyond,
  },

  local subject = '{{ $labels.probe }}, {{ $labels.operation }} ({{ $labels.workload }}) on {{ $labels.instance }}, device class {{ $labels.device_class }}',
  local baseline = 'the {{ $labels.source }} baseline {{ $labels.profile }}',

  // A range that holds the results of a whole span, its first included.
  local whole(span) = '%ds' % (promql.seconds(span) + canary.slackSeconds),

  // Recovery is slow by nature and seen elsewhere. Errors and catastrophes are never held back.
  local gated(expr, window) = |||
    (
    %(expr)s
    )
    unless on (%(cluster)s)
    (max_over_time(plumbline:recovery:bool[%(window)s]) == 1)
  ||| % (labels { expr: promql.indented(expr), window: window }),

  // Every result of the span, from its first to its last. The last is asked for by name: a range still holds what a
  // canary that is gone has left behind.
  local lasting(metric, threshold, span) =
    |||
      %(metric)s > %(threshold)g
      and
      min_over_time(%(metric)s[%(whole)s]) > %(threshold)g
      and
      %(metric)s offset %(span)s
    ||| % { metric: metric, threshold: threshold, span: span, whole: whole(span) },

  local excess = 'plumbline:canary_excess:ratio',
  local now = 'plumbline:degradation_fast:ratio{statistic="p50"}',

  local page = gated(
    |||
      %(now)s
      and on (%(judged)s)
      (
      %(steady)s
        and
        max_over_time(%(excess)s[%(whole)s]) <= %(level)g * min_over_time(%(excess)s[%(whole)s])
        or
      %(any)s
      )
    ||| % (labels + high.page {
             now: now,
             excess: excess,
             whole: whole(high.page.steadySpan),
             steady: promql.indented(lasting(excess, canary.beyond, high.page.steadySpan)),
             any: promql.indented(lasting(excess, canary.beyond, high.page.anySpan)),
           }),
    canary.recoveryWindow
  ),

  local ticket = gated(
    |||
      %(now)s
      and on (%(judged)s)
      (
        quantile_over_time(0.5, %(excess)s[%(shortSpan)s]) > %(shortExcess)g
        and
        quantile_over_time(0.5, %(excess)s[%(longSpan)s]) > %(longExcess)g
        and
        %(excess)s offset %(longSpan)s
        or
        avg_over_time(%(hour)s[%(dayWindow)s]) > %(dayRatio)g
        and
        avg_over_time(%(hour)s[%(hoursWindow)s]) > %(hoursRatio)g
        and
        %(hour)s offset %(dayWindow)s
      )
      or
      plumbline:degradation:ratio{statistic="mean"} > %(meanRatio)g
      and
      plumbline:degradation_long:ratio{statistic="mean"} > %(meanLongRatio)g
      unless on (%(judged)s)
      plumbline:degradation:ratio{statistic="p50"}
    ||| % (labels + high.ticket { now: now, excess: excess, hour: 'plumbline:canary_hour:ratio' }),
    canary.recoveryLongWindow
  ),

  // Why a canary's writes on one OSD are slow, where that OSD itself is not. Which OSDs share a placement group with it
  // nobody says here: it is one of the cluster's.
  local clusters = promql.clusterLabels(config),
  local clusterFormat = std.join(',', [label + '=%q' for label in clusters]),
  local clusterArguments = std.join(' ', ['$labels.' + label for label in clusters]),
  local waiting =
    '{{ if eq $labels.operation "write" }}{{ $osd := reReplaceAll "^.+/(osd[.].+)$" "$1" $labels.probe }}'
    + '{{ if query (printf `plumbline:osd_suspect:info{verdict="peer",ceph_daemon=%%q,%s}` $osd %s) }}' % [clusterFormat, clusterArguments]
    + ' {{ $osd }} itself is not suspected: its writes wait for replicas, and slow is'
    + '{{ range $index, $each := query (printf `plumbline:osd_slow_peer:info{%s}` %s) | sortByLabel "ceph_daemon" }}' % [clusterFormat, clusterArguments]
    + '{{ if $index }},{{ end }} {{ .Labels.ceph_daemon }}{{ end }}.{{ end }}{{ end }}',

  local replica = labels {
    osd: promql.join(clusters + ['ceph_daemon']),
    target: promql.join(clusters + ['target']),
    probeAndTarget: promql.join(config.instanceLabels + ['probe', 'target']),
  },
  local asTarget(expr) = 'label_replace(%s, "target", "$1", "ceph_daemon", "(.+)")' % expr,
  local targets = 'max by (%(probeAndTarget)s) (plumbline_probe_target_info{target=~"osd[.].+"})' % replica,

  local highAlert(tunables, expr, agrees) = alert.fromTunables(
    tunables,
    'PlumblineCanaryLatencyHigh',
    expr,
    latency,
    'A canary is slower than its baseline.',
    'Canary ' + subject + ': the {{ $labels.statistic }} latency is {{ printf "%.1f" $value }} times ' + baseline + ', and ' + agrees + '.',
  ),

  local share = 'plumbline:canary_slow_operations:ratio',

  // Failed operations are in both shares; their own is never held back.
  local burning(metric) = lasting(metric, burn.page.burn * canary.slowOperationsBudget, burn.page.span),

  local burnAlert(tunables, expr, window) = alert.fromTunables(
    tunables,
    'PlumblineCanaryBudgetBurn',
    expr,
    latency { window: window },
    'Too many canary operations are slower than the baseline allows, or fail.',
    '{{ $value | humanizePercentage }} of the operations of canary ' + subject + ', were slower than the limit set by the baseline or failed, over %s; the budget is %g%%.' % [window, 100 * canary.slowOperationsBudget],
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-canary',
      interval: canary.interval,
      rules: [
        alert.new(
          config,
          'PlumblineCanaryLatencyExtreme',
          'plumbline:degradation_fast:ratio{statistic="p50"} >= %g' % extreme.ratio,
          latency,
          'A canary is many times slower than its baseline.',
          'Canary ' + subject + ': the {{ $labels.statistic }} latency of the last %s is {{ printf "%%.1f" $value }} times ' % canary.fastWindow + baseline + '.' + waiting,
        ),
        alert.new(
          config,
          'PlumblineCanaryReplicaSlow',
          // Right behind the page that it holds back, so that both fire at the same moment.
          |||
            %(targets)s
            and on (%(target)s)
            %(waiting)s
            and on (%(cluster)s)
            (
              ALERTS{alertname=~"PlumblineOsd.+",alertstate="firing",signal!="health"}
              and on (%(osd)s)
              plumbline:osd_slow_peer:info
              or
              ALERTS{alertname="PlumblineCanaryLatencyExtreme",alertstate="firing"}
              and on (%(probe)s)
              (
                %(targets)s
                and on (%(target)s)
                %(slow)s
              )
            )
          ||| % (replica {
                   targets: targets,
                   waiting: asTarget('plumbline:osd_suspect:info{verdict="peer"}'),
                   slow: asTarget('plumbline:osd_slow_peer:info'),
                 }),
          { layer: 'osd', signal: 'health' },
          "A canary's writes wait for a replica on another OSD, which has an alert of its own.",
          'Canary {{ $labels.probe }} on {{ $labels.instance }}: writes to {{ $labels.target }} wait for replicas, and another OSD is slow and has an alert of its own. Latency alerts about writes of this canary follow from that and are held back.',
        ),
        highAlert(
          high.page,
          page,
          'it has exceeded what this hour allows for %s at a steady level, or for %s at any level' % [high.page.steadySpan, high.page.anySpan]
        ),
        highAlert(high.ticket, ticket, 'its longer windows agree'),
        alert.new(
          config,
          'PlumblineFleetLatencyHigh',
          gated(lasting('plumbline:fleet_beyond:ratio', fleet.share, fleet.span), canary.recoveryWindow),
          latency,
          'The canaries of most hosts are slower than their baselines.',
          '{{ $value | humanizePercentage }} of the hosts{{ with $labels.cluster }} of cluster {{ . }}{{ end }} find {{ $labels.operation }} ({{ $labels.workload }}, device class {{ $labels.device_class }}) more than %g times slower than this hour allows, for %s: the whole layer is slow, not one device.' % [canary.beyond, fleet.span],
        ),
        burnAlert(
          burn.page,
          gated(burning(share), canary.recoveryWindow) + 'or\n' + burning('plumbline:canary_failed_operations:ratio'),
          burn.page.span
        ),
        burnAlert(
          burn.ticket,
          gated(|||
            %(now)s
            and
            quantile_over_time(0.5, %(now)s[%(span)s]) > %(threshold)g
            and
            %(now)s offset %(span)s
            or
            %(now)s
            and
            avg_over_time(%(now)s[%(long)s]) > %(burst)g
            and
            avg_over_time(%(now)s[%(short)s]) > %(burst)g
            and
            count_over_time(%(now)s[%(long)s]) >= %(points)d
          ||| % (burn.ticket {
                   now: share,
                   threshold: burn.ticket.burn * canary.slowOperationsBudget,
                   burst: burn.ticket.burstBurn * canary.slowOperationsBudget,
                   points: std.floor(canary.burnCoverage * promql.seconds(burn.ticket.long) / promql.seconds(canary.interval)),
                 }), burn.ticket.long),
          burn.ticket.long
        ),
      ],
    }],
  },
}

// The canary against its limit: vantage points that agree are a page, one canary alone is a ticket; the catastrophe in
// one window; the tail as a budget.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

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
    clientLayers: std.join('|', config.blame.clientLayers),
    likeness: promql.join(promql.clusterLabels(config) + promql.likeness),
  },

  local subject = promql.canary + ', {{ $labels.operation }} ({{ $labels.workload }}) on {{ $labels.instance }}, device class {{ $labels.device_class }}',
  local baseline = 'the {{ $labels.source }} baseline ({{ $labels.profile }})',

  local whole = over(config).whole,
  local seen(metric, span) = promql.seen(config, metric, span, config.seen.slots.fast),

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
      %(metric)s
      and
      min_over_time(%(metric)s[%(whole)s]) > %(threshold)g
      and
      %(seen)s
      and
      %(metric)s offset %(span)s
    ||| % { metric: metric, threshold: threshold, span: span, whole: whole(span), seen: seen(metric, span) },

  // Most hosts, and hardly one of the others as usual, or most for longer.
  local most = 'plumbline:fleet_beyond:ratio{verdict="page"}',
  local agreeing =
    lasting(most, fleet.share, fleet.span)
    + |||
      and on (%(likeness)s)
      min_over_time(plumbline:fleet_beyond:ratio{verdict="near"}[%(whole)s]) > %(nearShare)g
      or
    ||| % (labels + fleet { whole: whole(fleet.span) })
    + lasting(most, fleet.share, fleet.mostSpan),

  local now = 'plumbline:degradation_fast:ratio{statistic="p50"}',
  local clients = 'layer=~"%s"' % labels.clientLayers,

  // Without a median in the baseline: both windows of the mean.
  local slow = |||
    %(now)s
    and on (%(judged)s)
    plumbline:canary_slow:info
    or
  ||| % (labels { now: now }) + gated(
    |||
      plumbline:degradation:ratio{statistic="mean"} > %(meanRatio)g
      and
      plumbline:degradation_long:ratio{statistic="mean"} > %(meanLongRatio)g
      unless on (%(judged)s)
      plumbline:degradation:ratio{statistic="mean"}
      <= on (%(tolerance)s) group_left ()
      plumbline:baseline_in_force:floor_ratio{statistic="mean"}
      unless on (%(judged)s)
      plumbline:degradation:ratio{statistic="p50"}
    ||| % (labels + high),
    canary.recoveryLongWindow
  ),

  // Why a canary's writes on one OSD are slow, where that OSD itself is not. Which OSDs share a placement group with it
  // nobody says here: it is one of the cluster's.
  local clusters = promql.clusterLabels(config),
  local clusterFormat = promql.format(clusters),
  local clusterArguments = promql.arguments(clusters),
  local waiting =
    '{{ if or (eq $labels.operation "write") (eq $labels.operation "remove") }}{{ $osd := reReplaceAll "^.+/(osd[.].+)$" "$1" $labels.probe }}'
    + '{{ if query (printf `plumbline:osd_suspect:info{verdict="peer",ceph_daemon=%%q,%s}` $osd %s) }}' % [clusterFormat, clusterArguments]
    + ' {{ $osd }} itself is not suspected: its writes wait for replicas on other OSDs. Slow OSDs:'
    + '{{ range $index, $each := query (printf `plumbline:osd_slow_peer:info{%s}` %s) | sortByLabel "ceph_daemon" }}' % [clusterFormat, clusterArguments]
    + '{{ if $index }},{{ end }} {{ .Labels.ceph_daemon }}'
    + '{{ with query (printf `plumbline:osd_host:info{ceph_daemon=%%q,%s}` .Labels.ceph_daemon %s) }} on {{ (first .).Labels.instance | stripPort }}{{ end }}' % [clusterFormat, clusterArguments]
    + '{{ end }}.{{ end }}{{ end }}',

  local replica = labels {
    osd: promql.join(clusters + ['ceph_daemon']),
    target: promql.join(clusters + ['target']),
    probeAndTarget: promql.join(config.instanceLabels + ['probe', 'target']),
  },
  local asTarget(expr) = 'label_replace(%s, "target", "$1", "ceph_daemon", "(.+)")' % expr,
  local targets = 'max by (%(probeAndTarget)s) (plumbline_probe_target_info{target=~"osd[.].+"})' % replica,

  // What somebody is woken for says what may be the cause.
  local cause(tunables) =
    if tunables.severity == 'critical' then ' Clients of layer {{ $labels.layer }} probably see the same.' + suspects.cause(config) else '',

  // What the limit of the ordinary ticket is, in the alert's own words: over longer spans less is enough.
  local limit = '{{ with query (printf `max(plumbline:canary_limit:ratio{verdict="ticket",%s,probe=%%q,operation=%%q,workload=%%q})` %s $labels.probe $labels.operation $labels.workload) }}; the limit over %s is {{ . | first | value | printf "%%.1f" }} times{{ end }}'
                % [promql.instanceFormat(config), promql.instanceArguments(config), high.span],

  // Over which spans it shows: the rules that make the ticket; none of them while it is only kept firing.
  local spans = '{{ with query (printf `plumbline:canary_slow:info{%s,probe=%%q,operation=%%q,workload=%%q}` %s $labels.probe $labels.operation $labels.workload) }}'
                % [promql.instanceFormat(config), promql.instanceArguments(config)]
                + ', seen over {{ range $index, $each := . | sortByLabel "span" }}{{ if $index }} and {{ end }}{{ .Labels.span }}{{ end }}{{ end }}'
                + '{{ if eq $labels.statistic "mean" }}, seen over %s and %s{{ end }}' % [canary.shortWindow, canary.meanLongWindow],

  local extremeAlert(tunables, expr) = alert.fromTunables(
    tunables,
    'PlumblineCanaryLatencyExtreme',
    expr,
    latency,
    'A canary is many times slower than its baseline.',
    subject + ': the {{ $labels.statistic }} latency of the last %s is {{ printf "%%.1f" $value }} times ' % canary.fastWindow + baseline + '.' + waiting + cause(tunables),
  ),

  local share = 'plumbline:canary_slow_operations:ratio',
  local level(window) = 'plumbline:canary_slow_level:ratio{window="%s"}' % window,

  // Of at least so many vantage points: one host's hiccups are its own. And about as many parts: one OSD is a ticket, from
  // however many hosts it is measured.
  local agreed(expr) = |||
    %(expr)s
    and on (%(likeness)s)
    (
      count by (%(likeness)s) (
        group by (%(hosts)s) (
          %(nested)s
        )
      ) >= %(least)d
      and on (%(likeness)s)
      count by (%(likeness)s) (
        group by (%(likeness)s, part) (
          %(parts)s
        )
      ) >= %(least)d
    )
  ||| % (labels {
           expr: std.rstripChars(expr, '\n'),
           nested: std.strReplace(promql.nested(expr), '\n', '\n      '),
           parts: promql.nested(promql.nested(over(config).ofPart('(\n  %s\n)' % promql.nested(expr)))),
           hosts: promql.join(config.instanceLabels + promql.likeness),
           least: canary.minimumHosts.client,
         }),

  // Failed operations are in both shares; their own is never held back, and compared with nothing.
  // Slower than the bound, and all the same as fast as nobody notices.
  local unnoticed = '\nunless on (%s)\n(\n  %s\n)' % [
    labels.series,
    promql.nested(std.join('\nor\n', [
      'plumbline:canary_latency:seconds{statistic="p99", layer="%s"} < %g' % [layer, config.floorSeconds[layer]]
      for layer in std.objectFields(config.floorSeconds)
    ])),
  ],
  local burning(metric) = lasting('%s{%s}' % [metric, clients], burn.page.burn * canary.slowOperationsBudget, burn.page.span),

  // Except what is usual for the canary itself, where that is known.
  local unusual(expr, level, window, times) = |||
    %(expr)s
    unless on (%(series)s)
    (
      %(level)s
      <= on (%(series)s)
      %(times)g * plumbline:canary_slow_usual:ratio{window="%(window)s"}
    )
  ||| % (labels { expr: std.rstripChars(expr, '\n'), level: level, window: window, times: times }),

  // What the hour's median explains: PlumblineCanaryLatencyHigh tells of it where it is too much.
  local raised = |||
    unless on (%(series)s)
    (
      plumbline:canary_hour:ratio
      / on (%(judged)s)
      plumbline:canary_expected:ratio
      > on (%(judged)s)
      1 + plumbline:canary_spread:ratio
    )
  ||| % labels,

  // A job of this hour that takes no longer than before: its tail is the job's.
  local knownJob = |||

    unless on (%(series)s)
    (
      plumbline:canary_job:ratio > 1
      unless on (%(judged)s)
      plumbline:canary_beyond:bool{verdict="page"} == 1
    )
  ||| % labels,

  // A baseline that does not describe the load has no budget either, until it is known what is usual.
  local outgrown = |||
    unless on (%(likeness)s)
    (
      plumbline:fleet_outgrown:ratio
      unless on (%(likeness)s)
      plumbline:canary_slow_usual:ratio{window="%(span)s"} offset %(knownFor)s
    )
  ||| % (labels { span: burn.ticket.span, knownFor: burn.knownFor }),

  // `over`: how the text names the window.
  local burnAlert(tunables, expr, window, over=window) = alert.fromTunables(
    tunables,
    'PlumblineCanaryBudgetBurn',
    expr,
    latency { window: window },
    'Too many operations of a canary are slow or fail.',
    subject + ': {{ $value | humanizePercentage }} of its operations were slower than the limit set by the baseline or failed, over %s; the budget is %g%%.' % [over, 100 * canary.slowOperationsBudget] + cause(tunables),
  ),

  _firstSteps+:: {
    PlumblineCanaryLatencyExtreme: 'follow what is suspected (' + first.query('plumbline:suspected:info') + ' lists all of it); if nothing is, {{ if eq $labels.layer "disk" }}' + first.on('iostat -x 1 60') + '{{ else }}`ceph -s`{{ end }}, then ' + first.probes + ': what does the canary use?',
    PlumblineCanaryLatencyHigh: first.query('plumbline:canary_limit:ratio') + ': one canary, one node or all?',
    PlumblineCanaryBudgetBurn: '`ceph -s`, if it is in Ceph, and ' + first.on('iostat -x 1 60') + ': work that comes at intervals, or errors?',
    PlumblineCanaryReplicaSlow: 'nothing here; follow the alert of the slow OSD (' + first.query('plumbline:osd_suspect:info') + ')',
    PlumblineCanaryRestless: first.query('plumbline:canary_spread:ratio') + ': this canary alone, or its whole layer?',
    PlumblineFleetLatencyHigh: '{{ if eq $labels.layer "disk" }}kernel, firmware or load{{ else }}`ceph -s`, then `ceph config log 5`{{ end }}: what has changed for all of them?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-canary',
      interval: canary.interval,
      rules: [
        extremeAlert(extreme.page, agreed('plumbline:canary_extreme:ratio{%s}' % clients) + 'or\n' + lasting('plumbline:canary_extreme:ratio{%s}' % clients, 0, extreme.page.span)),
        extremeAlert(extreme.ticket, 'plumbline:canary_extreme:ratio{layer!~"%s"}' % labels.clientLayers),
        alert.new(
          config,
          'PlumblineCanaryReplicaSlow',
          // Right behind the page of the slow OSD's canary, so that both fire at the same moment.
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
          "A canary's writes wait for a replica on a slow OSD.",
          promql.canary + ' on {{ $labels.instance }}: writes to {{ $labels.target }} wait for replicas, and another OSD is slow and has an alert of its own. Latency alerts about writes of this canary follow from that and are held back.',
        ),
        alert.new(
          config,
          'PlumblineCanaryLatencyHigh',
          slow,
          latency,
          'A canary is slower than its baseline.',
          subject + ': the {{ $labels.statistic }} latency is {{ printf "%.1f" $value }} times ' + baseline + spans + limit + '.',
        ),
        alert.new(
          config,
          'PlumblineCanaryRestless',
          'plumbline:canary_restless:ratio',
          { signal: 'health' },
          'The latency of a canary varies too much to be judged.',
          subject + ': its latency varied so much in the last %s that its limit would be {{ printf "%%.1f" $value }} times its baseline. No limit is above %g times, so it may exceed its limit in ordinary hours.' % [canary.spreadWindow, canary.cap],
        ),
        burnAlert(
          burn.page,
          gated(
            agreed(unusual(std.rstripChars(burning(share), '\n') + unnoticed + knownJob, 'min_over_time(%s[%s])' % [share, whole(burn.page.span)], burn.ticket.span, burn.page.usual)) + outgrown,
            canary.recoveryWindow
          ) + 'or\n' + burning('plumbline:canary_failed_operations:ratio'),
          burn.page.span
        ),
        burnAlert(
          burn.ticket,
          // The share of the window that is too high, of a canary that still is there.
          gated(|||
            (
              %(steady)s
              or on (%(series)s)
              %(bursts)s
            )
            and on (%(series)s)
            %(share)s
            %(outgrown)s
          ||| % (labels {
                   share: share,
                   outgrown: std.rstripChars(outgrown, '\n'),
                   steady: std.strReplace(promql.nested(unusual(
                     '%s > %g' % [level(burn.ticket.span), burn.ticket.burn * canary.slowOperationsBudget],
                     level(burn.ticket.span),
                     burn.ticket.span,
                     burn.ticket.usual
                   ) + raised + unnoticed[1:] + knownJob), '\n', '\n  '),
                   bursts: std.strReplace(promql.nested(unusual(
                     |||
                       %(level)s > %(burst)g
                       and on (%(series)s)
                       avg_over_time(%(share)s[%(short)s]) > %(burst)g
                       and on (%(series)s)
                       %(seen)s
                     ||| % (labels + burn.ticket {
                              level: level(burn.ticket.long),
                              share: share,
                              burst: burn.ticket.burstBurn * canary.slowOperationsBudget,
                              seen: seen(share, burn.ticket.short),
                            }),
                     level(burn.ticket.long),
                     burn.ticket.long,
                     burn.ticket.burstUsual
                   )), '\n', '\n  '),
                 }), burn.ticket.long),
          burn.ticket.long,
          '{{ $labels.window }}'
        ),
      ],
    }, {
      name: 'plumbline-vantage',
      interval: canary.agreementInterval,
      rules: [
        alert.new(
          config,
          'PlumblineFleetLatencyHigh',
          gated('max without (verdict) (\n%s\n)' % promql.indented(agreeing), canary.recoveryWindow),
          latency,
          'Most hosts see slow storage.',
          'On {{ $value | humanizePercentage }} of the OSDs or hosts that canaries measure{{ with $labels.cluster }} in cluster {{ . }}{{ end }}, {{ $labels.operation }} operations of layer {{ $labels.layer }} ({{ $labels.workload }}, device class {{ $labels.device_class }}) have been slower than their limits for at least %s: clients see it wherever they look. One part may be the cause where writes wait for its replicas.' % fleet.span
          + suspects.vantagePoints(
            config,
            'PlumblineFleetLatencyHigh',
            'plumbline:canary_beyond:bool{verdict="page",%s}',
            'plumbline:degradation_fast:ratio{statistic="p50",%s}',
            fleet.span,
            promql.clusterLabels(config) + promql.likeness
          )
          + suspects.cause(config, ['layer']),
        ),
      ],
    }],
  },
}

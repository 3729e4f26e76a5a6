// Watching the watcher: the probes. Their own trouble is layer `self`; what they prove of a disk carries its layer.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local self_ = { layer: 'self', signal: 'health' },

  local clusters = promql.clusterLabels(config),
  // The median canary's.
  local load(figure) = '{{ with query (printf `quantile(0.5, %s{figure="operations",%s})` %s) }}{{ . | first | value | humanize }}{{ end }}'
                       % [figure, promql.format(clusters), promql.arguments(clusters)],

  local unjudged = alerts.PlumblineCanaryUnjudged,
  local unjudgedLabels = labels {
    window: unjudged.window,
    seconds: promql.seconds(unjudged.window),
    completed: over(config).anyCompleted(unjudged.window),
    figures: std.ceil(config.seen.share * promql.seconds(unjudged.window) / promql.seconds(config.canary.interval)),
  },
  // Slower than the rules' rates can read, or too few operations between two scrapes.
  local ifSlowlyScraped = '{{ if gt $value %.1f }}' % (unjudged.slack * promql.seconds(config.scrapeInterval)),

  local stuck = alerts.PlumblineProbeStuck,
  local stuckAlert(each) = alert.fromTunables(
    { 'for': stuck['for'] } + each,
    'PlumblineProbeStuck',
    'plumbline:probe_stuck:seconds{layer%s"%s"}' % [if each.clients then '=~' else '!~', std.join('|', config.blame.clientLayers)],
    // As an error nothing holds the ticket back, neither a recovery nor lost packets.
    { signal: if each.clients then 'latency' else 'error' },
    'A probe hangs in one operation or run.',
    'Probe {{ $labels.probe }} on {{ $labels.instance }} has been in flight for {{ $value | humanizeDuration }}: layer {{ $labels.layer }} does not answer, and everything else that uses the same device, mount or cluster probably waits as well.'
    + (if each.clients then suspects.cause(config) else ''),
  ),

  _firstSteps+:: {
    PlumblineProbeOverdue: first.probes + ' says whether it fails, is skipped or hangs',
    PlumblineProbeStuck: first.probes + ', then ' + first.below,
    PlumblineProbeFailing: first.probes + ' gives the reason',
    PlumblineProbeSkipped: first.probes + ' says what holds it back',
    PlumblineCanaryOverdue: first.probes + ' says whether it was refused',
    PlumblineCanaryUnjudged: 'the scrape interval of this job in Prometheus and failed scrapes of this node; then ' + first.probes + ': its rate',
    PlumblineCanaryFailing: first.probes + ' shows what it uses; then ' + first.below,
    PlumblineBaselineMissing: first.on('plumbline baseline list') + '; record one while the node is quiet',
    PlumblineBaselineOutdated: first.on('plumbline baseline list') + '; was the change intended?',
    PlumblineBaselineOutgrown: 'record the baselines again under the usual load, then ' + first.query('plumbline:fleet_outgrown:ratio'),
    PlumblineBaselineMismatch: first.on('plumbline baseline list') + '; did somebody change the probe?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-probe',
      rules: [
        alert.new(
          config,
          'PlumblineProbeOverdue',
          'plumbline:probe_since_success:intervals > %g' % config.probe.staleIntervals,
          self_,
          'A periodic probe has not succeeded for several intervals.',
          'Probe {{ $labels.probe }} on {{ $labels.instance }} last succeeded {{ printf "%.1f" $value }} intervals ago; its old result is no longer compared with the baseline.',
        ),
        alert.new(
          config,
          'PlumblineCanaryOverdue',
          // Counted, not timed: a node's clock may be off by more than the window.
          |||
            max by (%(probe)s) (plumbline_probe_info{probe_type=~".*canary"})
            unless on (%(probe)s)
            (sum by (%(probe)s) (%(completed)s) > 0)
          ||| % (labels { completed: over(config).anyCompleted(alerts.PlumblineCanaryOverdue.window) }),
          self_,
          'A canary completes no operation.',
          promql.canary + ' on {{ $labels.instance }} has completed no operation for %s: it was refused, cannot start, or its disk hangs.' % alerts.PlumblineCanaryOverdue.window,
        ),
        alert.new(
          config,
          'PlumblineCanaryUnjudged',
          // Seconds from one scrape to the next, as they arrive. What completes nothing is PlumblineCanaryOverdue.
          |||
            %(seconds)d / max by (%(series)s) (count_over_time(plumbline_canary_workload_info[%(window)s]))
            and on (%(series)s)
            max by (%(series)s) (
              plumbline_canary_workload_info
              and on (%(key)s)
              plumbline:baseline_in_force:latency_seconds{statistic="p50"}
            )
            unless on (%(series)s)
            (count_over_time(plumbline:degradation_fast:ratio{statistic="p50"}[%(window)s]) > %(figures)d)
            and on (%(probe)s)
            (sum by (%(probe)s) (%(completed)s) > 0)
          ||| % unjudgedLabels,
          self_,
          'A canary has a baseline and is not judged.',
          promql.canary + ', {{ $labels.operation }} ({{ $labels.workload }}) on {{ $labels.instance }}, device class {{ $labels.device_class }}: no verdict about its latency for %s, because ' % unjudged['for'] + ifSlowlyScraped
          + 'its metrics arrive every {{ printf "%%.0f" $value }} s: scrape them every %s at most, without gaps{{ else }}it completes fewer than %d operations in %s{{ end }}.' % [config.scrapeInterval, config.canary.minimumOperations.fast, config.canary.fastWindow],
        ),
      ] + std.map(stuckAlert, stuck.severities) + [
        alert.new(
          config,
          'PlumblineProbeFailing',
          |||
            max by (%(probe)s) (plumbline_probe_success) == 0
            and on (%(probe)s)
            plumbline_probe_interval_seconds
            and on (%(probe)s)
            (
              plumbline:probe_since_success:intervals > %(missed)g
              or
              (
                plumbline_probe_last_run_timestamp_seconds
                unless on (%(probe)s)
                plumbline_probe_last_success_timestamp_seconds
              )
            )
          ||| % (labels { missed: config.probe.missedIntervals }),
          self_,
          'A periodic probe fails.',
          'Probe {{ $labels.probe }} on {{ $labels.instance }}: its last run failed, and no recent run succeeded.',
        ),
        alert.new(
          config,
          'PlumblineCanaryFailing',
          // `unless ... offset`: a counter that is born with its first error has no increase yet.
          |||
            sum by (%(probe)s, operation, error) (
              increase(plumbline_canary_errors_total[%(window)s]) > 0
              or
              (plumbline_canary_errors_total > 0 unless plumbline_canary_errors_total offset %(window)s)
            )
          ||| % (labels + alerts.PlumblineCanaryFailing) + promql.withLayer(config),
          { signal: 'error' },
          'Operations of a canary fail.',
          '{{ printf "%%.0f" $value }} {{ $labels.operation }} operation%s of canary {{ $labels.probe }} on {{ $labels.instance }} failed with {{ $labels.error }} within %s. Programs that use the same storage may get the same errors.' % [promql.plural, alerts.PlumblineCanaryFailing.window],
        ),
        alert.new(
          config,
          'PlumblineBaselineMissing',
          'sum by (%s, layer, device_class) (plumbline_baseline_missing == 1)' % labels.instance,
          { signal: 'health' },
          'Measurements have no baseline to be compared with.',
          'On {{ $labels.instance }}, no baseline is in force for {{ $value }} measured operation' + promql.plural + ' of layer {{ $labels.layer }}, device class {{ $labels.device_class }}: shown, but not judged.',
        ),
        alert.new(
          config,
          'PlumblineBaselineOutdated',
          // `part` is what changed, or `age`; the value is 1, or the age in seconds.
          |||
            (
              max by (%(recorded)s, part) (plumbline_baseline_environment_changed) == 1
              or
              label_replace(
                time() - min by (%(recorded)s) (
                  max by (%(entry)s) (plumbline_baseline_measured_timestamp_seconds)
                  and on (%(entry)s)
                  plumbline:baseline_in_force:info
                ) > %(age)d,
                "part", "age", "", ""
              )
            )
            and on (%(recorded)s)
            plumbline:baseline_in_force:info
          ||| % (labels {
                   recorded: promql.join(config.instanceLabels + ['source', 'profile']),
                   age: promql.seconds(alerts.PlumblineBaselineOutdated.age),
                 }),
          self_,
          'A baseline no longer matches its node.',
          'The {{ $labels.source }} baseline ({{ $labels.profile }}) on {{ $labels.instance }} {{ if eq $labels.part "age" }}was measured {{ $value | humanizeDuration }} ago{{ else }}was measured before the {{ $labels.part }} of this node changed{{ end }}: a deviation from it may reflect a change and not a fault.',
        ),
        alert.new(
          config,
          'PlumblineBaselineMismatch',
          'sum by (%s, probe, source, profile) (plumbline_baseline_mismatch)' % labels.instance,
          self_,
          'A baseline was measured with other parameters than its probe.',
          'Plumbline does not judge {{ $value }} operation' + promql.plural + ' of probe {{ $labels.probe }} on {{ $labels.instance }}: the {{ $labels.source }} baseline ({{ $labels.profile }}) was measured with other parameters (config_hash).',
        ),
      ],
    }, {
      // Looks back for more than a week.
      name: 'plumbline-probe-skipped',
      interval: config.paces.daily,
      rules: [
        alert.new(
          config,
          'PlumblineBaselineOutgrown',
          // Lasting: beyond the tolerance on a day of the week, and above what is judged until it is recorded again.
          |||
            max by (%(cluster)s) (
              plumbline:fleet_outgrown:ratio
              and
              max_over_time(plumbline:fleet_outgrown:ratio[%(window)s]) > %(minimum)g
            )
          ||| % alerts.PlumblineBaselineOutgrown {
            cluster: promql.join(promql.clusterLabels(config)),
            minimum: config.minimumTolerance,
          },
          self_,
          'The baselines of a cluster describe less load than it serves.',
          'All canaries of a layer{{ with $labels.cluster }} of cluster {{ . }}{{ end }} are slower than their baselines, by {{ printf "%.1f" $value }} times at the median host, and serve more than at the recording: per disk, they were recorded at '
          + load('plumbline:canary_load_recorded:figure') + ' operations/s and serve ' + load('plumbline:canary_load_hour:figure') + '. Until they are recorded again at that load, each canary is compared with the median host.',
        ),
        alert.new(
          config,
          'PlumblineProbeSkipped',
          |||
            sum by (%(probe)s, reason) (
              increase(plumbline_probe_runs_skipped_total[%(window)s]) > 0
              or
              (plumbline_probe_runs_skipped_total > 0 unless plumbline_probe_runs_skipped_total offset %(window)s)
            )
            and on (%(probe)s)
            plumbline:probe_since_run:intervals > %(missed)g
          ||| % (labels + alerts.PlumblineProbeSkipped { missed: config.probe.missedIntervals }),
          self_,
          'A periodic probe is always skipped.',
          'Probe {{ $labels.probe }} on {{ $labels.instance }} does not run: its last starts were skipped, reason {{ $labels.reason }}.',
        ),
      ],
    }],
  },
}

// A canary that is slower because its disk or OSD has more to do: information, with the load beside it.
local alert = import '../lib/alert.libsonnet';
local over = import '../lib/canary.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config) { latest: std.rstripChars(over(config).latest, '\n') },

  local query(metric, figure, format) =
    '{{ with query (printf `%s{figure="%s",probe=%%q,workload=%%q,operation=%%q,%s}` $labels.probe $labels.workload $labels.operation %s) }}'
    % [metric, figure, promql.instanceFormat(config), promql.instanceArguments(config)]
    + '{{ . | first | value | ' + format + ' }}' + (if figure == 'bytes' then 'B/s' else ' operations/s') + '{{ end }}',
  local both(metric) =
    local bytes = query(metric, 'bytes', 'humanize');
    query(metric, 'operations', 'humanize') + std.strReplace(bytes, '{{ . | first', ', {{ . | first'),

  _firstSteps+:: {
    PlumblineCanaryBusy: 'nothing now; `plumbline ceph top` shows where the load is',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-load',
      interval: config.load.interval,
      rules: [
        alert.new(
          config,
          'PlumblineCanaryBusy',
          |||
            %(latest)s
            > on (%(tolerance)s) group_left ()
            max by (%(tolerance)s) (plumbline:baseline_in_force:tolerance_ratio)
            and on (%(judged)s)
            plumbline:canary_busy:info
          ||| % labels,
          { signal: 'saturation' },
          'A canary is slow under more load than its baseline had.',
          promql.canary + ', {{ $labels.operation }} ({{ $labels.workload }}) on {{ $labels.instance }}, device class {{ $labels.device_class }}: the latency is {{ printf "%.1f" $value }} times the {{ $labels.source }} baseline ({{ $labels.profile }}). Served now: '
          + both('plumbline:canary_load:figure') + '; when the baseline was recorded, or usually at this hour: ' + both('plumbline:canary_load_reference:figure') + '. The load explains the latency: this is not a fault.',
        ),
      ],
    }],
  },
}

// Watching the watcher: the exporter itself. Layer `self`.
local alert = import '../lib/alert.libsonnet';

{
  local config = $._config,
  local self_ = { layer: 'self', signal: 'health' },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-self',
      rules: [
        alert.new(
          config,
          'PlumblineWatchdog',
          'vector(1)',
          self_,
          'Prometheus evaluates rules and reaches Alertmanager.',
          'This alert always fires. Its receiver has to alarm when it stops arriving{{ with $externalLabels.cluster }} from cluster {{ . }}{{ end }}.',
        ),
        alert.new(
          config,
          'PlumblineTargetsAbsent',
          'absent(up{%s})' % config.plumblineSelector,
          self_,
          'Prometheus scrapes no Plumbline target at all.',
          'No target matches job {{ $labels.job }}: no storage node is watched. Either service discovery found none or the scrape job was removed or renamed.',
        ),
        alert.new(
          config,
          'PlumblineDown',
          'up{%s} == 0' % config.plumblineSelector,
          self_,
          'A Plumbline daemon cannot be scraped.',
          'Prometheus gets no answer from Plumbline on {{ $labels.instance }}: the daemon, the node or the way to it is down. Nothing else of this node can be judged.',
        ),
        alert.new(
          config,
          'PlumblineCollectorFailing',
          'plumbline_collector_success == 0',
          self_,
          'A Plumbline collector fails on every scrape.',
          'Collector {{ $labels.collector }} on {{ $labels.instance }} fails: its series are missing, alerts and panels that need them are blind.',
        ),
        alert.new(
          config,
          'PlumblineConfigReloadFailed',
          'plumbline_config_last_reload_successful == 0',
          self_,
          'Plumbline refused its new configuration.',
          'The configuration on {{ $labels.instance }} has a mistake; the one loaded before stays in force.',
        ),
      ],
    }],
  },
}

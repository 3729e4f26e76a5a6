// Watching the watcher: the exporter itself. Layer `self`.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local instance = promql.labels(config).instance,
  local self_ = { layer: 'self', signal: 'health' },
  local heavy = alerts.PlumblineDaemonHeavy,
  local down = alerts.PlumblineDown,

  // Its end was announced too.
  local over = '{{ with query (printf `plumbline:maintenance_over:info{%s}` %s) }} Maintenance of {{ $labels.instance }} has ended and it has not come back.{{ end }}'
               % [promql.instanceFormat(config), promql.instanceArguments(config)],

  local downAlert(each) = alert.fromTunables(
    { 'for': down['for'] } + each,
    'PlumblineDown',
    |||
      up{%(selector)s} == 0
      %(operator)s on (%(instance)s)
      plumbline:node_storage_up:info
      unless on (%(instance)s)
      plumbline:maintenance_node:info
    ||| % { selector: config.plumblineSelector, instance: instance, operator: if each.answers then 'and' else 'unless' },
    self_,
    if each.answers then 'A Plumbline daemon cannot be scraped' else
      '{{ with query (printf `count(plumbline:osd_host:info{%s} and on (%s) plumbline:osd_up:bool == 0)` %s) }}A host is gone with {{ . | first | value }} of its OSDs{{ else }}A host does not answer{{ end }}'
      % [promql.instanceFormat(config), promql.join(promql.clusterLabels(config) + ['ceph_daemon']), promql.instanceArguments(config)],
    'Prometheus gets no answer from Plumbline on {{ $labels.instance }}: the daemon, the node or the network path to it is down. Nothing else on this node can be judged.'
    + (if each.answers then ' Its storage answers: its OSDs are up, or it has none and other nodes watch the cluster.'
       else ' There is no sign that its storage answers: clients may be affected.')
    + over + suspects.maintenance(config),
  ),

  // Not by `rate`: how often is what a person wants to know.
  local grown(selector, name, label='', value='', by='') =
    local sum = 'sum by (%s%s) (increase(%s[%s])) > 0' % [instance, by, selector, alerts[name].window];
    if label == '' then sum else 'label_replace(%s, "%s", "%s", "", "")\n' % [sum, label, value],
  local grownOfOurs(metric, name) = grown('%s{rule_group=~"%s"}' % [metric, alerts[name].groups], name, by=', rule_group'),
  local resource(name, expr) = 'label_replace(%s, "resource", "%s", "", "")' % [expr, name],

  // What makes Prometheus leave out whole scrapes or targets, by the setting's name.
  local limits = {
    sample_limit: 'scrapes_exceeded_sample_limit',
    body_size_limit: 'scrapes_exceeded_body_size_limit',
    target_limit: 'scrape_pool_exceeded_target_limit',
    label_limit: 'scrape_pool_exceeded_label_limits',
  },

  _firstSteps+:: {
    PlumblineWatchdog: 'nothing while it arrives; when it stops, `curl http://localhost:9090/-/ready` on the Prometheus host',
    PlumblineTargetsAbsent: '`promtool check config /etc/prometheus/prometheus.yml` on the Prometheus host',
    PlumblineDown: '`ping` the node; if it answers, `systemctl status plumbline` there',
    PlumblineCollectorFailing: first.journal + ' says why',
    PlumblineConfigReloadFailed: first.on('plumbline config check /etc/plumbline/plumbline.yaml') + ' names the key',
    PlumblineStateNotSaved: first.on('df -h /var/lib/plumbline') + ': full or read-only?',
    PlumblineWebGuardsLost: first.journal + ' names what is missing',
    PlumblineDaemonHeavy: '`curl "http://{{ $labels.instance }}/metrics?profile=full"` and look for the slowest collector',
    PlumblineThreadFailing: first.journal + ' has the traceback',
    PlumblineScrapeSlow: '`time curl http://{{ $labels.instance }}/metrics` from here and on the node',
    PlumblineScrapeRejected: '`curl http://{{ $labels.instance }}/api/v1/targets` names the targets and the limit',
    PlumblineRuleFailing: '`curl http://{{ $labels.instance }}/api/v1/rules` shows lastError',
    PlumblineRulesLate: '`curl http://{{ $labels.instance }}/metrics` shows which group takes how long',
    PlumblineAlertsDropped: '`curl http://{{ $labels.instance }}/api/v1/alertmanagers`: is one there, and does it answer?',
    PlumblineNotificationsFailing: '`journalctl -u prometheus-alertmanager` on the Alertmanager host says why',
  },

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
          'This alert always fires. Its receiver must raise an alarm when it stops arriving{{ with $externalLabels.cluster }} from cluster {{ . }}{{ end }}.',
        ),
        alert.new(
          config,
          'PlumblineTargetsAbsent',
          'absent(up{%s})' % config.plumblineSelector,
          self_,
          'Prometheus scrapes no Plumbline target at all.',
          'No target matches job {{ $labels.job }}: no storage node is monitored. Either service discovery found none, or the scrape job was removed or renamed.',
        ),
      ] + std.map(downAlert, down.severities) + [
        alert.new(
          config,
          'PlumblineCollectorFailing',
          'plumbline_collector_success == 0',
          self_,
          'A Plumbline collector fails on every scrape.',
          'Collector {{ $labels.collector }} on {{ $labels.instance }} fails: its series are missing, and alerts and panels that need them do not work.',
        ),
        alert.new(
          config,
          'PlumblineConfigReloadFailed',
          'plumbline_config_last_reload_successful == 0',
          self_,
          'Plumbline refused its new configuration.',
          'The configuration on {{ $labels.instance }} is not valid; the previous configuration stays in force.',
        ),
        alert.new(
          config,
          'PlumblineStateNotSaved',
          'plumbline_state_last_save_successful == 0',
          self_,
          'Plumbline cannot write its state.',
          'The storage path on {{ $labels.instance }} cannot be written: results, counters and known disks are only in memory and will be lost at the next restart.',
        ),
        alert.new(
          config,
          'PlumblineWebGuardsLost',
          'plumbline_web_guards_lost > 0',
          self_,
          'A reload removed a protection of a Plumbline port.',
          'The web configuration on {{ $labels.instance }} was reloaded without {{ $value }} of its protections (TLS, client certificates, allowed names, passwords or rate limit). The daemon log names what is missing.',
        ),
        alert.new(
          config,
          'PlumblineDaemonHeavy',
          // Each resource as a share of what it may be; the process's own metrics have no name of ours.
          |||
            (
              %(cpu)s
              or
              %(memory)s
              or
              %(descriptors)s
            )
            > 1
            and on (%(instance)s)
            plumbline_build_info
          ||| % {
            instance: instance,
            cpu: resource('cpu', 'max by (%s) (rate(process_cpu_seconds_total[%s])) / %g' % [instance, heavy.cpuWindow, heavy.cpus]),
            memory: resource('memory', 'max by (%s) (process_resident_memory_bytes) / %d' % [instance, heavy.residentBytes]),
            descriptors: resource(
              'descriptors',
              'max by (%(instance)s) (process_open_fds) / on (%(instance)s) max by (%(instance)s) (process_max_fds) / %(share)g'
              % { instance: instance, share: heavy.descriptors }
            ),
          },
          { layer: 'self', signal: 'capacity' },
          'A Plumbline daemon uses too many resources of its node.',
          'The daemon on {{ $labels.instance }} uses {{ printf "%.1f" $value }} times the {{ $labels.resource }} that it may use: it slows down what it monitors, and may be killed at the limit of its unit.',
        ),
        alert.new(
          config,
          'PlumblineThreadFailing',
          grown('plumbline_thread_failures_total', 'PlumblineThreadFailing', by=', thread'),
          { layer: 'self', signal: 'error' },
          'A thread of a Plumbline daemon fails.',
          'On {{ $labels.instance }} the thread {{ $labels.thread }} failed {{ printf "%.0f" $value }} time' + promql.plural + ': its work is late or missing, and the log shows why.',
        ),
        alert.new(
          config,
          'PlumblineScrapeSlow',
          'scrape_duration_seconds{%s} > %g' % [config.plumblineSelector, alerts.PlumblineScrapeSlow.seconds],
          { layer: 'self', signal: 'capacity' },
          'Scrapes of a Plumbline daemon take too long.',
          'A scrape of {{ $labels.instance }} takes {{ $value | humanizeDuration }}; beyond the timeout of the scrape job the node counts as down.',
        ),
      ],
    }, {
      name: 'plumbline-prometheus',
      rules: [
        alert.new(
          config,
          'PlumblineScrapeRejected',
          std.join('or\n', [
            grown('prometheus_target_%s_total' % limits[limit], 'PlumblineScrapeRejected', 'limit', limit)
            for limit in std.objectFields(limits)
          ]),
          self_,
          'Prometheus rejects scrapes that exceed a limit.',
          'Prometheus {{ $labels.instance }} rejected scrapes or targets {{ printf "%.0f" $value }} time' + promql.plural + ' because of its {{ $labels.limit }}: whole nodes are missing from rules, alerts and dashboards.',
        ),
        alert.new(
          config,
          'PlumblineRuleFailing',
          grownOfOurs('prometheus_rule_evaluation_failures_total', 'PlumblineRuleFailing'),
          { layer: 'self', signal: 'error' },
          'A rule of Plumbline fails in Prometheus.',
          'Rules of {{ $labels.rule_group }} failed {{ printf "%.0f" $value }} time' + promql.plural + ' on Prometheus {{ $labels.instance }}: what they cover is not monitored.',
        ),
        alert.new(
          config,
          'PlumblineRulesLate',
          grownOfOurs('prometheus_rule_group_iterations_missed_total', 'PlumblineRulesLate'),
          { layer: 'self', signal: 'capacity' },
          'Prometheus does not finish the rules of Plumbline in time.',
          'Prometheus {{ $labels.instance }} missed {{ printf "%.0f" $value }} evaluation' + promql.plural + ' of {{ $labels.rule_group }}: verdicts come late.',
        ),
        alert.new(
          config,
          'PlumblineAlertsDropped',
          grown('prometheus_notifications_dropped_total', 'PlumblineAlertsDropped'),
          { layer: 'self', signal: 'error' },
          'Alerts do not reach Alertmanager.',
          'Prometheus {{ $labels.instance }} dropped {{ printf "%.0f" $value }} alert' + promql.plural + ' on their way to Alertmanager: nobody was notified of them.',
        ),
        alert.new(
          config,
          'PlumblineNotificationsFailing',
          grown('alertmanager_notifications_failed_total', 'PlumblineNotificationsFailing', by=', integration'),
          { layer: 'self', signal: 'error' },
          'Alertmanager cannot deliver notifications.',
          'Alertmanager {{ $labels.instance }} failed to deliver {{ printf "%.0f" $value }} notification' + promql.plural + ' by {{ $labels.integration }}.',
        ),
      ],
    }],
  },
}

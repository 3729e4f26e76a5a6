// What tells us of Ceph, watched: without these a cluster whose metrics are gone or stand still looks healthy.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local histograms = import '../lib/histogram.libsonnet';
local osd = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.clusterLabels(config),
  local stale = config.alerts.PlumblineCephManagerStale,
  local labels = {
    cluster: promql.join(clusters),
    daemon: promql.join(clusters + ['ceph_daemon']),
    socket: promql.join(clusters + ['ceph_daemon', 'hostname']),
    window: config.ceph.window,
  },
  local inCluster = '{{ with $labels.cluster }} in cluster {{ . }}{{ end }}',

  // One collection has many methods; two managers around a failover have two of each.
  local collections(suffix) =
    'sum by (%(cluster)s) (max by (%(method)s) (rate(ceph_prometheus_collect_duration_seconds_%(suffix)s[%(window)s])))'
    % (labels { suffix: suffix, method: promql.join(clusters + ['method']) }),
  local because(reason, expr) = promql.labelled(expr, 'reason', reason),

  // The ceph-exporter (20.2.4) writes "ceph-osd.0" here and "osd.0" on its counters, and lists the sockets of clients too:
  // a client that was killed leaves its socket behind for good, so only those of Ceph's daemons count.
  local silent(kinds) = |||
    max by (%(socket)s) (
      label_replace(ceph_daemon_socket_up{ceph_daemon=~"(ceph-)?(%(kinds)s)[.].+"}, "ceph_daemon", "$1", "ceph_daemon", "(?:ceph-)?(.+)")
    ) == 0
  ||| % (labels { kinds: kinds }),
  // Plumbline's own alert covers the OSDs that its daemon asks.
  local silentOsds = '%sunless on (%s)\n(plumbline_osd_socket_up or plumbline_osd_socket_ended)\n' % [silent('osd'), labels.daemon],
  // OSDs whose admin sockets count operations while their exported counters stand still.
  local frozen(by) = |||
    count by (%(by)s) (
      sum by (%(node)s) (%(asked)s) > %(operations)g
      and on (%(daemon)s)
      (sum by (%(daemon)s) (plumbline:osd_operations:rate5m) == 0)
    )
  ||| % (labels {
           by: promql.join(by),
           node: promql.join(clusters + ['ceph_daemon', 'instance']),
           asked: histograms(config).count('rate', 'plumbline_osd_latency_seconds', '[%s]' % config.ceph.window),
           operations: stale.operationsPerSecond,
         }),

  local exporters = 'group by (%(cluster)s) (ceph_exporter_scrape_time)' % labels,

  local socketDown(layer, expr) = alert.new(
    config,
    'PlumblineCephExporterDown',
    expr,
    { layer: layer, signal: 'health' },
    'A Ceph daemon does not answer the ceph-exporter.',
    '{{ $labels.ceph_daemon }}%s{{ with $labels.hostname }} on {{ . }}{{ end }} does not answer on its admin socket: it hangs, or it has exited and left the socket behind. Its counters are missing.' % inCluster,
  ),

  _firstSteps+:: {
    PlumblineCephPerfCountersMissing: '`ceph orch ls --service-type ceph-exporter`: is it there and scraped?',
    PlumblineCephLabelsWrong: '`plumbline doctor --prometheus URL` names the clusters and what they lack',
    PlumblineCephManagerStale: '`ceph mgr stat`; if the manager is stuck, `ceph mgr fail`',
    PlumblineCephExporterStale: '`ceph orch ps`; find the daemon on that host that does not answer',
    PlumblineCephExporterDown: '`ceph daemon %s version` on its host' % first.osd,
    PlumblineCephMetricsAbsent: '`ceph mgr services`: is a manager active, and is it scraped?',
  },

  // Monitors and OSDs that are at two addresses at once are those of two clusters.
  local atTwoAddresses = |||
    count by (%(cluster)s) (
      count by (%(daemon)s) (
        group by (%(daemon)s, cluster_addr) (ceph_osd_metadata{cluster_addr!=""})
        or
        group by (%(daemon)s, public_addr) (ceph_mon_metadata{public_addr!=""})
      ) > 1
    )
  ||| % labels,

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-ceph-guard',
      rules: [
        alert.new(
          config,
          'PlumblineCephPerfCountersMissing',
          |||
            count by (%(cluster)s) (
              plumbline:osd_up:bool == 1
              unless on (%(daemon)s)
              plumbline:osd_operations:rate5m
            )
          ||| % labels,
          { layer: 'self', signal: 'health' },
          'OSDs run, but their performance counters are not exported.',
          'Prometheus has no performance counters of {{ $value }} running OSD%s%s, so their latency is not monitored. Run `ceph orch apply ceph-exporter` and scrape it, or set mgr/prometheus/exclude_perf_counters to false.' % [promql.plural, inCluster],
        ),
        alert.new(
          config,
          'PlumblineCephManagerStale',
          std.join('\nor\n', [
            // the page is served from a cache, and nothing fills it
            because('stuck', '%s == 0' % collections('count')),
            // it is filled, but a collection takes longer than the time between two
            because('slow', '%s\n/ on (%s)\n(max by (%s) (rate(ceph_prometheus_collect_duration_seconds_count[%s])) > 0)\n> %d' % [
              collections('sum'),
              labels.cluster,
              labels.cluster,
              labels.window,
              stale.collectSeconds,
            ]),
            // no ceph-exporter: the counters come from the manager
            because('frozen', '%sunless on (%s)\n%s' % [frozen(clusters), labels.cluster, exporters]),
          ]),
          { layer: 'self', signal: 'health' },
          "Ceph's own metrics are out of date.",
          "{{ if eq $labels.reason \"stuck\" }}The manager%(in)s serves its metrics from a cache that is no longer updated{{ else if eq $labels.reason \"slow\" }}The manager%(in)s takes {{ printf \"%%.0f\" $value }} s to collect its metrics and serves old ones meanwhile{{ else }}Counters of {{ $value }} OSDs%(in)s do not change, although the admin sockets of these OSDs count operations{{ end }}: alerts and dashboards show old data about Ceph." % { 'in': inCluster },
        ),
        alert.new(
          config,
          'PlumblineCephExporterStale',
          '%sand on (%s)\n%s' % [frozen(clusters + ['instance']), labels.cluster, exporters],
          { layer: 'self', signal: 'health' },
          'A ceph-exporter serves old counters.',
          'The ceph-exporter on {{ $labels.instance }} does not update its page: the counters of {{ $value }} OSD' + promql.plural + ' do not change, although their admin sockets count operations. Usually it waits for a daemon on this host that does not answer.',
        ),
        socketDown('osd', osd.onHost(config, silentOsds, ['hostname'])),
        socketDown('rados', silent('mon|mgr|mds')),
        alert.new(
          config,
          'PlumblineCephLabelsWrong',
          because('mixed', atTwoAddresses) + '\nor\n' + because('hostname', 'plumbline:osd_hostname_wrong:info'),
          { layer: 'self', signal: 'health' },
          "Labels of Ceph's metrics are not what rules take them for.",
          '{{ if eq $labels.reason "mixed" }}{{ $value }} Ceph daemon%s%s with more than one address at once: two clusters are mixed in this Prometheus, and one can hide faults of the other. Give the metrics of each cluster a label `cluster` of its own.{{ else }}The hostnames of OSDs%s in ceph_osd_metadata are not those of their nodes (pods\' names?): what is computed for each host uses what the daemons on the nodes see, or is missing.{{ end }}' % [promql.plural, inCluster, inCluster],
        ),
        alert.new(
          config,
          'PlumblineCephMetricsAbsent',
          |||
            count by (%(cluster)s) (
              group by (%(daemon)s) (plumbline_osd_socket_up or plumbline_osd_socket_ended)
              or
              group by (%(daemon)s) (
                label_replace(plumbline_disk_use_info{use="osd",user=~"osd[.].+"}, "ceph_daemon", "$1", "user", "(.+)")
              )
            )
            unless on (%(cluster)s)
            ceph_health_status
          ||| % labels,
          { layer: 'self', signal: 'health' },
          'OSDs are present, but Prometheus has no metrics of Ceph itself.',
          'Plumbline watches hosts%s with {{ $value }} OSD%s, but Prometheus has no metrics of Ceph itself with the same cluster label: no manager is active, its prometheus module is off, or it is not scraped.' % [inCluster, promql.plural],
        ),
      ],
    }],
  },
}

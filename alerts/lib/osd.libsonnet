// OSDs and the hosts they are on. Ceph's metrics carry the manager's `instance`, so nothing that Alertmanager compares
// by instance would ever match them; and the manager moves.
local promql = import 'promql.libsonnet';

local hosts = 'plumbline:osd_host:info';

{
  // Label lists of one configuration, as text for `by (...)` and `on (...)`.
  labels(config)::
    local cluster = promql.clusterLabels(config);
    {
      cluster: promql.join(cluster),
      osd: promql.join(cluster + ['ceph_daemon']),
      // where it runs: our `instance`, Ceph's `hostname`
      osdOn: promql.join(cluster + ['ceph_daemon', 'instance']),
      osdAt: promql.join(cluster + ['ceph_daemon', 'hostname']),
      host: promql.join(cluster + ['hostname']),
      class: promql.join(cluster + ['device_class']),
      ofClass: promql.join(cluster + ['ceph_daemon', 'device_class']),
      // one figure of an OSD, of its class, of its class on one host
      figure: promql.join(cluster + ['ceph_daemon', 'figure']),
      peers: promql.join(cluster + ['device_class', 'figure']),
      onHost: promql.join(cluster + ['hostname', 'device_class', 'figure']),
      network: promql.join(cluster + ['interface']),
      disk: promql.labels(config).interface,
    },

  // Added to an expression: nothing while data moves.
  quiet(config):: |||
    unless on (%(cluster)s)
    plumbline:recovery:bool == 1
  ||| % self.labels(config),

  // A part of the store, and of client operations (osd_shares.libsonnet).
  store(config, part)::
    'max by (%s) (plumbline:osd_store_latency:mean5m{part="%s"})' % [self.labels(config).osd, part],
  part(config, operation, part)::
    'max by (%s) (plumbline:osd_%s_part:seconds{part="%s"})' % [self.labels(config).osd, operation, part],

  // One for each OSD. ceph-exporter 17.2.6 says "ceph-osd.0"; while it is updated both names are in the window, so the
  // name is normalised in a label of its own: two series that became one in label_replace would be an error.
  one(config, expr, aggregation='max'):: |||
    %(aggregation)s by (%(daemon)s) (
      label_replace(
        %(aggregation)s by (%(osd)s) (
          label_replace(
            %(expr)s,
            "osd", "$1", "ceph_daemon", "(?:ceph-)?(osd[.].+)"
          )
        ),
        "ceph_daemon", "$1", "osd", "(.+)"
      )
    )
  ||| % {
    daemon: promql.join(promql.clusterLabels(config) + ['ceph_daemon']),
    osd: promql.join(promql.clusterLabels(config) + ['osd']),
    aggregation: aggregation,
    expr: std.strReplace(std.rstripChars(expr, '\n'), '\n', '\n        '),
  },

  // `expr`, whose series carry `ceph_daemon` ("osd.3"), by cluster and OSD with the `instance` of that OSD's host.
  // `keep`: more of its labels. Several producers of one series and a manager that moves give one result, the
  // largest. An OSD whose host is not known stays, without `instance`: an alert must not vanish for want of a name.
  onHost(config, expr, keep=[])::
    local osd = promql.join(promql.clusterLabels(config) + ['ceph_daemon']);
    local all = promql.join(promql.clusterLabels(config) + ['ceph_daemon'] + keep);
    |||
      max by (%(all)s) (
        %(expr)s
      )
      * on (%(osd)s) group_left (instance)
      %(hosts)s
      or on (%(osd)s)
      max by (%(all)s) (
        %(expr)s
      )
    ||| % {
      all: all,
      osd: osd,
      expr: promql.nested(expr),
      hosts: hosts,
    },
}

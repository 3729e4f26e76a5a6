// Which hosts are in announced maintenance: by a lease, by a flag of the host, or by `noout` of the cluster.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local maintenance = config.maintenance,
  local clusters = promql.clusterLabels(config),
  local labels = osds.labels(config) {
    instance: promql.join(config.instanceLabels),
    target: promql.join(clusters + ['target']),
    daemon: promql.join(clusters + ['ceph_daemon']),
    lease: promql.join(clusters + ['host', 'why', 'who']),
    announced: promql.join(clusters + ['host']),
    up: 'up{%s}' % config.plumblineSelector,
    longest: maintenance.longest,
    longestSeconds: promql.seconds(maintenance.longest),
    memory: maintenance.memory,
    flagLasts: maintenance.flagLasts,
    hostFlags: std.join('|', maintenance.hostFlags),
  },
  local nested = promql.nested,

  // Nodes by the names of hosts in `expr`, label `host`. A name that two nodes have is none.
  local named(expr) = |||
    group by (%(instance)s) (
      (
        plumbline:node_hostname:info
        unless on (%(host)s)
        (count by (%(host)s) (plumbline:node_hostname:info) > 1)
      )
      and on (%(host)s)
      label_replace(%(expr)s, "hostname", "$1", "host", "(.+)")
    )
  ||| % (labels { expr: expr }),

  // Somebody has set it, and not too long ago. A gap while the manager fails over changes nothing.
  local noout = |||
    (
      max by (%(cluster)s) (last_over_time(ceph_osd_flag_noout[%(memory)s])) == 1
      or on (%(cluster)s)
      group by (%(cluster)s) (plumbline_ceph_maintenance_flag{flag="noout",host=""})
    )
    unless on (%(cluster)s)
    (
      min by (%(cluster)s) (min_over_time(ceph_osd_flag_noout[%(flagLasts)s])) == 1
      and on (%(cluster)s)
      ceph_osd_flag_noout offset %(flagLasts)s
    )
  ||| % labels,

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-maintenance.rules',
      rules: [
        {
          // When it ends or ended, as last scraped from whichever daemon carries it: that may be the host that is off. No
          // lease ends later than the longest: the clock of that daemon is wrong.
          record: 'plumbline:maintenance_until:seconds',
          expr: |||
            max by (%(lease)s) (last_over_time(plumbline_maintenance_until_timestamp_seconds[%(longest)s]))
            <= time() + %(longestSeconds)d
          ||| % labels,
        },
        {
          // Nodes where an OSD that Ceph counts on is down. One that is out has been down for long.
          record: 'plumbline:node_osds_down:info',
          expr: |||
            group by (%(instance)s) (
              plumbline:osd_host:info
              and on (%(osd)s)
              (plumbline:osd_up:bool == 0 unless on (%(osd)s) ceph_osd_in == 0)
            )
          ||| % labels,
        },
        {
          // `noout` names no host: it announces the first whose OSDs go down after it was set, as long as they stay down,
          // and no second. One that was down beside another does not become announced when the other is back.
          record: 'plumbline:maintenance_noout:info',
          expr: |||
            (
              (
                plumbline:node_osds_down:info
                and on (%(cluster)s)
                (count by (%(cluster)s) (plumbline:node_osds_down:info) == 1)
                unless on (%(instance)s)
                last_over_time(plumbline:maintenance_not_announced:info[%(memory)s])
              )
              or on (%(instance)s)
              (
                plumbline:node_osds_down:info
                and on (%(instance)s)
                last_over_time(plumbline:maintenance_noout:info[%(memory)s])
              )
            )
            and on (%(cluster)s)
            (
              %(noout)s
            )
          ||| % (labels { noout: nested(nested(noout)) }),
        },
        {
          record: 'plumbline:maintenance_not_announced:info',
          expr: |||
            plumbline:node_osds_down:info
            unless on (%(instance)s)
            plumbline:maintenance_noout:info
          ||| % labels,
        },
        {
          record: 'plumbline:maintenance_node:info',
          expr: |||
            group by (%(instance)s) (
              %(leases)s
              or on (%(instance)s)
              (%(up)s and on (%(cluster)s) (plumbline:maintenance_until:seconds{host=""} > time()))
              or on (%(instance)s)
              %(flags)s
              or on (%(instance)s)
              plumbline:maintenance_noout:info
            )
          ||| % (labels {
                   leases: nested(named('plumbline:maintenance_until:seconds{host!=""} > time()')),
                   flags: nested(named('plumbline_ceph_maintenance_flag{flag=~"%s",host!=""}' % labels.hostFlags)),
                 }),
        },
        {
          record: 'plumbline:maintenance_osd:info',
          expr: |||
            plumbline:osd_host:info
            and on (%(instance)s)
            plumbline:maintenance_node:info
          ||| % labels,
        },
        {
          record: 'plumbline:maintenance_monitor:info',
          expr: |||
            group by (%(daemon)s) (
              ceph_mon_metadata{hostname!=""}
              and on (%(host)s)
              (plumbline:node_hostname:info and on (%(instance)s) plumbline:maintenance_node:info)
            )
          ||| % labels,
        },
        {
          // Targets of probes that lead to these nodes: their names, and the addresses of their OSDs.
          record: 'plumbline:maintenance_target:info',
          expr: |||
            group by (%(target)s) (
              label_replace(
                plumbline:node_hostname:info{hostname!=""}
                and on (%(instance)s)
                plumbline:maintenance_node:info,
                "target", "$1", "hostname", "(.+)"
              )
              or
              label_replace(
                ceph_osd_metadata{public_addr!=""}
                and on (%(osd)s)
                plumbline:maintenance_osd:info,
                "target", "$1", "public_addr", "(.+)"
              )
              or
              label_replace(
                ceph_osd_metadata{cluster_addr!=""}
                and on (%(osd)s)
                plumbline:maintenance_osd:info,
                "target", "$1", "cluster_addr", "(.+)"
              )
            )
          ||| % labels,
        },
        {
          // Clusters in which OSDs are down, all of them of these nodes.
          record: 'plumbline:maintenance_explains:info',
          expr: |||
            group by (%(cluster)s) (
              plumbline:maintenance_osd:info
              and on (%(osd)s)
              plumbline:osd_up:bool == 0
            )
            unless on (%(cluster)s)
            (
              plumbline:osd_up:bool == 0
              unless on (%(osd)s)
              plumbline:maintenance_osd:info
              unless on (%(osd)s)
              ceph_osd_in == 0
            )
          ||| % labels,
        },
        {
          // Nodes that were gone when their maintenance ended, and have not been back since.
          record: 'plumbline:maintenance_over:info',
          expr: |||
            group by (%(instance)s) (%(up)s == 0)
            and on (%(instance)s)
            (
              max_over_time(plumbline:maintenance_node:info[%(memory)s])
              or on (%(instance)s)
              last_over_time(plumbline:maintenance_over:info[%(memory)s])
            )
            unless on (%(instance)s)
            plumbline:maintenance_node:info
          ||| % labels,
        },
      ],
    }],
  },
}

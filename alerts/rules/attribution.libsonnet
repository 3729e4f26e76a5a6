// Where the time of client operations goes, OSD by OSD; which OSDs are out of line with their class; and of what each is
// suspected: its own disk, its host, the network, a limit above its disk, its queue, or a peer.
//
// A write is done when this OSD and its replicas have committed. Its time:
//   queue (message's arrival → taken from the queue) + prepare (→ handed to store and replicas) + commit wait,
// and of the commit wait as much is this OSD's own store as a transaction takes there on average; what is left was spent
// on the replicas and the network. An OSD that waits for nobody but itself has no rest.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local osd = config.osd,
  local cluster = promql.clusterLabels(config),
  local labels = osd {
    cluster: promql.join(cluster),
    osd: promql.join(cluster + ['ceph_daemon']),
    osdOn: promql.join(cluster + ['ceph_daemon', 'instance']),
    osdAt: promql.join(cluster + ['ceph_daemon', 'hostname']),
    host: promql.join(cluster + ['hostname']),
    figure: promql.join(cluster + ['ceph_daemon', 'figure']),
    peers: promql.join(cluster + ['device_class', 'figure']),
    disk: promql.join(config.instanceLabels + ['device']),
    network: promql.join(cluster + ['interface']),
    ofClass: promql.join(cluster + ['ceph_daemon', 'device_class']),
    class: promql.join(cluster + ['device_class']),
    minimumCapacities: config.alerts.PlumblineOsdCapacityMisjudged.minimumOsds,
    ping: promql.join(config.instanceLabels + ['ceph_daemon', 'interface']),
    hostOsds: osd.host.minimumOsds,
    hostShare: osd.host.share,
    pingFloor: osd.heartbeat.floorSeconds,
    pingSpread: osd.heartbeat.spread,
    pingShare: osd.heartbeat.share,
  },
  local nested(text) = promql.nested(text),

  local latency(operation, part) =
    'max by (%s) (plumbline:osd_latency:mean5m{operation="%s", part="%s"})' % [labels.osd, operation, part],
  local store(part) = 'max by (%s) (plumbline:osd_store_latency:mean5m{part="%s"})' % [labels.osd, part],

  // --- shares

  // The smaller of two, where there are both.
  local smaller(a, b) = |||
    (%(a)s < on (%(osd)s) %(b)s)
    or on (%(osd)s)
    (%(b)s <= on (%(osd)s) %(a)s)
  ||| % (labels { a: a, b: b }),

  local less(from, what) = |||
    clamp_min(
      %(from)s
      - on (%(osd)s)
      %(what)s,
      0
    )
  ||| % (labels { from: from, what: what }),

  local part(operation, name, expr) = {
    record: 'plumbline:osd_%s_part:seconds' % operation,
    expr: expr,
    labels: { part: name },
  },
  local parts(operation, name) =
    'max by (%s) (plumbline:osd_%s_part:seconds{part="%s"})' % [labels.osd, operation, name],

  local share(operation) = {
    record: 'plumbline:osd_%s_share:ratio' % operation,
    expr: |||
      plumbline:osd_%(operation)s_part:seconds
      / on (%(osd)s) group_left ()
      (%(total)s > 0)
    ||| % (labels { operation: operation, total: latency(operation, 'total') }),
  },

  // --- figures

  local ofCanary(metric) = 'avg by (%s) (label_replace(%s, "ceph_daemon", "$1", "probe", ".+/(osd[.].+)"))'
                           % [labels.osd, metric],

  // Of this kind of operation enough: next to an OSD's thousand writes the mean of three reads is chance.
  local enough(metric, operation, more='') = |||
    max by (%(osd)s) (
      %(metric)s{operation=~"%(operation)s"%(more)s}
      and on (%(osd)s, operation)
      plumbline:osd_operations:rate5m >= %(minimumOperationsPerSecond)g
    )
  ||| % (labels { metric: metric, operation: operation, more: more }),

  // What is compared with the class. Seconds all of them, but the load.
  local figures = {
    load: 'sum by (%(osd)s) (plumbline:osd_operations:rate5m)' % labels,
    write: enough('plumbline:osd_latency:mean5m', 'write', ', part="total"'),
    read: enough('plumbline:osd_latency:mean5m', 'read', ', part="total"'),
    write_p99: enough('plumbline:osd_latency:p99_seconds', 'write'),
    read_p99: enough('plumbline:osd_latency:p99_seconds', 'read'),
    queue: enough('plumbline:osd_latency:mean5m', 'read|write', ', part="queue"'),
    peers: parts('write', 'peers'),
    commit: store('commit'),
    store_read: |||
      %(read)s
      and on (%(osd)s)
      plumbline:osd_operations:rate5m{operation="read"} >= %(minimumOperationsPerSecond)g
    ||| % (labels { read: store('read') }),
    // What this OSD takes for others' writes, by its own account.
    subop: |||
      sum by (%(osd)s) (rate(plumbline_osd_subop_seconds_total[%(window)s]))
      /
      (sum by (%(osd)s) (rate(plumbline_osd_subops_total[%(window)s])) >= %(minimumOperationsPerSecond)g)
    ||| % labels,
    // Of one OSD the canary's reads alone are its own: writes wait for replicas.
    canary: ofCanary('plumbline:canary_latency:seconds{layer="rados", operation="read", statistic="mean"}'),
    // The block layer's, of the slowest of the OSD's devices.
    block: |||
      max by (%(osd)s) (
        max by (%(disk)s) (plumbline:disk_latency:mean_seconds{operation=~"read|write|flush"})
        * on (%(disk)s) group_right ()
        plumbline:osd_disk:info
      )
    ||| % labels,
  },

  local quiet = |||
    unless on (%(cluster)s)
    plumbline:recovery:bool == 1
  ||| % labels,

  local slow(regex) = 'group by (%s) (plumbline:osd_slow:info{figure=~"%s"})' % [labels.osd, regex],

  // --- verdicts

  local verdict(name, expr) = {
    record: 'plumbline:osd_suspect:info',
    expr: expr,
    labels: { verdict: name },
  },
  local suspects(regex) = 'group by (%s) (plumbline:osd_suspect:info{verdict=~"%s"})' % [labels.osd, regex],
  local located = 'group by (%(osdAt)s) (plumbline:osd:info)' % labels,
  local slowAnyhow = slow('commit|store_read|subop|queue'),

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-osd-shares.rules',
        interval: config.paces.compared,
        rules: [
          part('write', 'queue', latency('write', 'queue')),
          part('write', 'prepare', latency('write', 'prepare')),
          part('write', 'store', smaller(latency('write', 'commit_wait'), store('commit'))),
          part('write', 'peers', less(latency('write', 'commit_wait'), parts('write', 'store'))),
          share('write'),
          part('read', 'queue', latency('read', 'queue')),
          // A read of a replicated pool goes to the store while it is prepared, one of an erasure-coded afterwards.
          part('read', 'store', smaller(latency('read', 'process'), store('read'))),
          part('read', 'prepare', less(latency('read', 'prepare'), parts('read', 'store'))),
          part('read', 'other', less(less(latency('read', 'process'), parts('read', 'store')), parts('read', 'prepare'))),
          share('read'),
        ],
      },
      {
        name: 'plumbline-osd-figures.rules',
        interval: config.paces.compared,
        rules: [
          {
            // The node whose daemon asks this OSD; of two that claim it, minutes after it has moved, one; else where
            // the OSD is known to be. Without an instance where nobody knows, so that a join loses no OSD.
            record: 'plumbline:osd_node:info',
            expr: |||
              topk by (%(osd)s) (1, group by (%(osdOn)s) (plumbline_osd_socket_up))
              or on (%(osd)s)
              plumbline:osd_host:info
              or on (%(osd)s)
              group by (%(osd)s) (plumbline:osd:info)
            ||| % labels,
          },
          {
            // Data, DB and log: a transaction waits for all of them. Two OSDs may share a device.
            record: 'plumbline:osd_disk:info',
            expr: |||
              group by (%(disk)s, ceph_daemon) (
                label_replace(plumbline_disk_info{osd!=""}, "ceph_daemon", "$1", "osd", "(osd[.].+)")
                or
                label_replace(plumbline_disk_use_info{use=~"osd|osd-db|osd-wal", user!=""}, "ceph_daemon", "$1", "user", "(osd[.].+)")
              )
            ||| % labels,
          },
          {
            record: 'plumbline:osd_compared:figure',
            expr: |||
              (
                %(figures)s
              )
              * on (%(osd)s) group_left (device_class)
              topk by (%(osd)s) (1, group by (%(osd)s, device_class) (plumbline:osd:info))
              and on (%(osd)s)
              sum by (%(osd)s) (plumbline:osd_operations:rate5m) >= %(minimumOperationsPerSecond)g
            ||| % (labels {
                     figures: nested(std.join('\nor\n', [promql.labelled(figures[name], 'figure', name) for name in std.objectFields(figures)])),
                   }),
          },
          {
            // The judged OSD's own figure is in it; a median of three or more stands on a healthy one all the same.
            record: 'plumbline:osd_class:figure',
            expr: |||
              quantile by (%(peers)s) (0.5, plumbline:osd_compared:figure)
              and on (%(peers)s)
              count by (%(peers)s) (plumbline:osd_compared:figure) >= %(minimumOsds)d
            ||| % labels,
          },
          {
            // 1 is as the class. Not of OSDs that do much more work than it, but for their queue.
            record: 'plumbline:osd_class:ratio',
            expr: |||
              (
                plumbline:osd_compared:figure{figure!="load"}
                unless on (%(osd)s)
                (
                  plumbline:osd_compared:figure{figure="load"}
                  > on (%(peers)s) group_left ()
                  %(comparableLoad)g * plumbline:osd_class:figure
                )
                or
                plumbline:osd_compared:figure{figure="queue"}
              )
              / on (%(peers)s) group_left ()
              (plumbline:osd_class:figure > 0)
            ||| % labels,
          },
          {
            record: 'plumbline:osd_slow:info',
            expr: |||
              group by (%(figure)s) (
                plumbline:osd_class:ratio >= %(ratio)g
                and on (%(figure)s)
                plumbline:osd_compared:figure >= %(floorSeconds)g
              )
            ||| % labels + quiet,
          },
          {
            // By another road: what was measured from outside, by the replicas' account or in the tail.
            record: 'plumbline:osd_slow_agreed:info',
            expr: |||
              group by (%(figure)s) (
                plumbline:osd_class:ratio{figure=~"canary|subop"} >= %(agreeRatio)g
                or
                plumbline:osd_class:ratio{figure=~"read_p99|write_p99"} >= %(tailRatio)g
              )
            ||| % labels,
          },
          {
            // Of the periods of its control group's CPU quota, those in which it stood still until the next. Absent
            // without a quota, or where nobody sees it.
            record: 'plumbline:osd_cpu_throttled:ratio',
            expr: |||
              max by (%(osd)s) (
                rate(plumbline_osd_cgroup_cpu_throttled_periods_total[%(window)s])
                /
                (rate(plumbline_osd_cgroup_cpu_periods_total[%(window)s]) > 0)
              )
            ||| % labels,
          },
          {
            // The block layer of the OSD's devices.
            record: 'plumbline:osd_slow_device:info',
            expr: |||
              group by (%(osd)s) (plumbline:osd_class:ratio{figure="block"} >= %(agreeRatio)g)
              or
              group by (%(osd)s) (
                (max by (%(disk)s) (rate(plumbline_disk_busy_seconds_total[%(window)s])) >= %(busyRatio)g)
                * on (%(disk)s) group_right ()
                plumbline:osd_disk:info
              )
            ||| % labels,
          },
        ],
      },
      {
        name: 'plumbline-osd-verdicts.rules',
        interval: config.paces.compared,
        rules: [
          {
            // How many of the OSDs that tell their pings hold this one for the worst of their peers, by network.
            record: 'plumbline:osd_accusations:count',
            expr: |||
              max by (%(osd)s, interface) (
                label_replace(
                  count_values by (%(network)s) (
                    "peer",
                    max by (%(ping)s) (plumbline_osd_heartbeat_worst_peer_id)
                    and on (%(ping)s)
                    plumbline_osd_heartbeat_seconds{statistic="worst"} >= %(pingFloor)g
                    and on (%(ping)s)
                    max by (%(ping)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
                    >= on (%(ping)s)
                    %(pingSpread)g * max by (%(ping)s) (plumbline_osd_heartbeat_seconds{statistic="median"})
                  ),
                  "ceph_daemon", "osd.$1", "peer", "(.+)"
                )
              )
            ||| % labels,
          },
          // Most of a host's OSDs are slow: none of them is to blame.
          verdict('host', |||
            group by (%(osd)s) (
              (
                %(located)s
                and on (%(osd)s)
                %(slow)s
              )
              and on (%(host)s)
              (
                count by (%(host)s) (%(located)s and on (%(osd)s) %(slow)s) >= %(hostOsds)d
                > on (%(host)s)
                %(hostShare)g * count by (%(host)s) (%(located)s)
              )
            )
          ||| % (labels { located: located, slow: slowAnyhow })),
          // Pings have no disk in them. Most of the others accuse it, or it is far from all of its peers.
          verdict('network', |||
            group by (%(osd)s) (
              plumbline:osd_accusations:count
              > on (%(network)s) group_left ()
              %(pingShare)g * count by (%(network)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
            )
            or
            group by (%(osd)s) (
              max by (%(osd)s, interface) (plumbline_osd_heartbeat_seconds{statistic="median"}) >= %(pingFloor)g
              >= on (%(network)s) group_left ()
              %(ratio)g * quantile by (%(network)s) (0.5, plumbline_osd_heartbeat_seconds{statistic="median"})
            )
            unless on (%(osd)s)
            %(host)s
          ||| % (labels { host: suspects('host') })),
          // Its store is slow, and its devices say so, too; where they can't be compared, another signal has to.
          verdict('disk', |||
            %(slow)s
            and on (%(osd)s)
            (
              plumbline:osd_slow_device:info
              or on (%(osd)s)
              (
                group by (%(osd)s) (plumbline:osd_slow_agreed:info)
                unless on (%(osd)s)
                plumbline:osd_class:ratio{figure="block"}
              )
            )
            unless on (%(osd)s)
            %(host)s
          ||| % (labels { slow: slow('commit|store_read'), host: suspects('host') })),
          // Its store is slow, and its devices, where they can be compared, are not: what holds it back is above them. Or it
          // is out of CPU time by quota. After the disk, because a device that is slow or at work all the time explains the
          // store. Before the queue, which only grows because of it. Beside the network: that slows no commit, but an OSD
          // without CPU time answers pings late.
          verdict('limit', |||
            group by (%(osd)s) (
              %(slow)s
              and on (%(osd)s)
              plumbline:osd_class:ratio{figure="block"}
              or
              %(slowAnyhow)s
              and on (%(osd)s)
              plumbline:osd_cpu_throttled:ratio >= %(throttledShare)g
            )
            unless on (%(osd)s)
            %(others)s
          ||| % (labels {
                   slow: slow('commit|store_read'),
                   slowAnyhow: slowAnyhow,
                   others: suspects('host|disk'),
                 })),
          verdict('queue', |||
            %(slow)s
            and on (%(osd)s)
            group by (%(osd)s) (
              plumbline:osd_write_share:ratio{part="queue"} >= %(queueShare)g
              or
              plumbline:osd_read_share:ratio{part="queue"} >= %(queueShare)g
            )
            unless on (%(osd)s)
            %(others)s
          ||| % (labels { slow: slow('queue'), others: suspects('host|network|disk|limit') })),
          {
            // Others wait for these.
            record: 'plumbline:osd_slow_peer:info',
            expr: |||
              %(slow)s
              or
              %(suspects)s
            ||| % { slow: slow('commit|subop'), suspects: suspects('host|network|disk|limit|queue') },
          },
          // It waits for its replicas, and there is one that is slow.
          verdict('peer', |||
            group by (%(osd)s) (
              plumbline:osd_write_share:ratio{part="peers"} >= %(share)g
              and on (%(osd)s)
              plumbline:osd_compared:figure{figure="peers"} >= %(floorSeconds)g
              and on (%(cluster)s)
              plumbline:osd_slow_peer:info
              unless on (%(osd)s)
              plumbline:osd_slow_peer:info
            )
          ||| % labels + quiet),
        ],
      },
      {
        name: 'plumbline-osd-capacity.rules',
        interval: config.paces.compared,
        rules: [
          {
            // What mClock takes an OSD for: of the two settings the one of its own device.
            record: 'plumbline:osd_capacity:iops',
            expr: |||
              max by (%(ofClass)s) (plumbline_osd_mclock_capacity_iops)
              and on (%(ofClass)s)
              label_replace(plumbline:osd:info, "device_class", "ssd", "device_class", "nvme")
            ||| % labels,
          },
          {
            // By what a bench of this very OSD measured; else by what is usual for its class.
            record: 'plumbline:osd_capacity:ratio',
            expr: |||
              plumbline:osd_capacity:iops
              / on (%(osd)s) group_left ()
              (
                avg by (%(osd)s) (
                  label_replace(
                    plumbline_probe_iops{workload=~"%(capacityWorkload)s"},
                    "ceph_daemon", "$1", "probe", ".+/(osd[.].+)"
                  )
                )
                > 0
              )
              or on (%(osd)s)
              plumbline:osd_capacity:iops
              / on (%(class)s) group_left ()
              (
                quantile by (%(class)s) (0.5, plumbline:osd_capacity:iops) > 0
                and on (%(class)s)
                count by (%(class)s) (plumbline:osd_capacity:iops) >= %(minimumCapacities)d
              )
            ||| % labels,
          },
        ],
      },
    ],
  },
}

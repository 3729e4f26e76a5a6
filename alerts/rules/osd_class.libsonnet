// Which OSDs are out of line, and in what: with their class in the cluster, or by their mean with their equals on the host.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local osd = config.osd,
  local equals = osd.equals,
  local labels = osd + osds.labels(config),

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
    peers: osds.part(config, 'write', 'peers'),
    commit: osds.store(config, 'commit'),
    store_read: |||
      %(read)s
      and on (%(osd)s)
      plumbline:osd_operations:rate5m{operation="read"} >= %(minimumOperationsPerSecond)g
    ||| % (labels { read: osds.store(config, 'read') }),
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

  // Judged by the mean. Not the queue, which is far from the others' with little more to do; the tail has no mean.
  local means = 'block|commit|read|store_read|subop|write',
  local onHost = |||
    plumbline:osd_compared:figure{figure=~"%(compared)s", hostname!=""}
    / on (%(onHost)s) group_left ()
    (
      quantile by (%(onHost)s) (0.5, plumbline:osd_compared:figure) > 0
      and on (%(onHost)s)
      count by (%(onHost)s) (plumbline:osd_compared:figure) >= %(minimumOsds)d
    )
  ||| % (labels { compared: 'load|' + means, minimumOsds: equals.minimumOsds }),
  local inCluster = |||
    plumbline:osd_compared:figure{figure=~"%(compared)s"}
    / on (%(peers)s) group_left ()
    (plumbline:osd_class:figure > 0)
  ||| % (labels { compared: 'load|' + means }),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-osd-figures.rules',
      interval: config.paces.compared,
      rules: [
        {
          // The node whose daemon asks this OSD; of two that claim it, minutes after it has moved, one; else where
          // the OSD is known to be. Without an instance where nobody knows, so that a join loses no OSD.
          record: 'plumbline:osd_node:info',
          expr: |||
            topk by (%(osd)s) (1, group by (%(osdOn)s) (plumbline_osd_socket_up or plumbline_osd_socket_ended))
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
            * on (%(osd)s) group_left (device_class, hostname)
            plumbline:osd:info
            and on (%(osd)s)
            sum by (%(osd)s) (plumbline:osd_operations:rate5m) >= %(minimumOperationsPerSecond)g
          ||| % (labels {
                   figures: promql.nested(std.join('\nor\n', [promql.labelled(figures[name], 'figure', name) for name in std.objectFields(figures)])),
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
          // 1 is as the equals: OSDs of the class on the host; where those are too few, in the cluster.
          record: 'plumbline:osd_equals:ratio',
          expr: |||
            %(host)s
            or on (%(figure)s)
            %(cluster)s
          ||| % (labels {
                   host: promql.labelled(onHost, 'among', 'host'),
                   cluster: promql.labelled(inCluster, 'among', 'cluster'),
                 }),
        },
        {
          // From here on it is out of line: slower at the same load is a fault.
          record: 'plumbline:osd_equals_limit:ratio',
          expr: |||
            (
              %(limits)s
            )
            * on (%(osd)s) group_left ()
            clamp_min(max by (%(osd)s) (plumbline:osd_equals:ratio{figure="load"}), 1)
          ||| % (labels { limits: promql.nested(promql.limits('plumbline:osd_equals:ratio', equals.ratio)) }),
        },
        {
          // Seconds that count: against the class's median operation.
          record: 'plumbline:osd_slow:info',
          expr: |||
            group by (%(figure)s) (
              plumbline:osd_class:ratio >= %(ratio)g
              unless on (%(figure)s)
              (
                plumbline:osd_compared:figure
                < on (%(class)s) group_left ()
                %(floorShare)g * min by (%(class)s) (plumbline:osd_class:figure{figure=~"read|write"})
              )
            )
          ||| % labels + osds.quiet(config),
          labels: { by: 'class' },
        },
        {
          record: 'plumbline:osd_slow:info',
          expr: |||
            group by (%(figure)s) (
              min_over_time(plumbline:osd_equals:ratio{figure=~"%(means)s"}[%(equalsWindow)s])
              >=
              plumbline:osd_equals_limit:ratio
              and
              %(seen)s
              unless on (%(figure)s)
              (
                plumbline:osd_compared:figure
                < on (%(peers)s) group_left ()
                %(equalsFloor)g * plumbline:osd_class:figure
              )
            )
          ||| % (labels {
                   means: means,
                   equalsWindow: equals.window,
                   equalsFloor: equals.floorShare,
                   seen: promql.seen(
                     config, 'plumbline:osd_equals:ratio{figure=~"%s"}' % means, equals.window, config.seen.slots.compared
                   ),
                 })
          + osds.quiet(config),
          labels: { by: 'equals' },
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
    }],
  },
}

// How much of what the hardware was measured to do is used, and how long a lost host's data takes to come back.
local osd = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local capacity = config.capacity,
  local headroom = capacity.headroom,
  local recovery = capacity.recovery,
  local clusters = promql.clusterLabels(config),
  local by(more) = promql.join(clusters + more),
  local all = promql.labels(config),
  local labels = headroom {
    daemon: by(['ceph_daemon']),
    class: by(['device_class']),
    host: by(['device_class', 'root', 'rack', 'host']),
    pool: by(['pool_id']),
    demand: by(['layer', 'device_class', 'figure']),
    instance: all.instance,
    interface: all.interface,
    probe: all.probe,
    portClass: promql.join(config.instanceLabels + ['device', 'device_class']),
    portOperation: promql.join(config.instanceLabels + ['device', 'operation']),
    nodeOperation: promql.join(config.instanceLabels + ['device_class', 'operation']),
    seconds: promql.seconds(headroom.window),
    recoverySpan: recovery.span,
    minimumShare: recovery.minimumShare,
    historyWindow: capacity.historyWindow,
  },

  // Sums over placement groups: they may go back a little, which is no reset; so no rate(). And a manager that has just
  // taken over tells zeros first: what seems to be done then was done long ago.
  local perSecond(metric) = |||
    max by (%(pool)s) (
      clamp_min(delta(%(metric)s[%(window)s]), 0) / %(seconds)d
      unless
      (min_over_time(%(metric)s[%(window)s]) == 0 and max_over_time(%(metric)s[%(window)s]) > 0)
    )
  ||| % (labels { metric: metric }),

  local labelled = promql.labelled,
  local rawRatio = 'plumbline:capacity_pool_raw:ratio',
  local copies = 'plumbline:capacity_pool_copies:count',
  local nested(text, depth=1) = if depth == 0 then std.rstripChars(text, '\n') else promql.nested(nested(text, depth - 1)),

  // What OSDs do for clients of pools: reads and writes of a pool, each times the OSDs, or the bytes, that one asks.
  local asked(reads, readTimes, writes, writeTimes) = |||
    sum by (%(class)s) (
      (
        %(reads)s
        * on (%(pool)s)
        %(readTimes)s
        + on (%(pool)s)
        %(writes)s
        * on (%(pool)s)
        %(writeTimes)s
      )
      * on (%(pool)s) group_left (device_class)
      plumbline:capacity_pool:info{device_class!=""}
    )
  ||| % (labels {
           reads: nested(perSecond(reads), 2),
           readTimes: nested(readTimes, 2),
           writes: nested(perSecond(writes), 2),
           writeTimes: nested(writeTimes, 2),
         }),

  // That, ÷ what as many OSDs did in their bench.
  local osds(figure, demand, bench) = {
    record: 'plumbline:capacity_demand:ratio',
    expr: |||
      %(demand)s
      / on (%(class)s)
      (
        count by (%(class)s) (plumbline:capacity_osd_size:bytes)
        * on (%(class)s)
        %(bench)s
      )
    ||| % (labels { demand: nested(demand, 0), bench: nested(bench, 1) }),
    labels: { layer: 'osd', figure: figure },
  },

  local bench(baseline, workload) =
    'avg by (%s) (%s{layer="osd",workload=~"%s",operation="write"})' % [labels.class, baseline, workload],

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-capacity-load.rules',
      interval: config.paces.compared,
      rules: [
        {
          // How many OSDs a read asks: one of a replicated pool, k of an erasure code (copies ÷ raw ratio: k + m over
          // (k + m) ÷ k). Where only those are asked that hold what is wanted, a read of whole blocks asks one, and
          // another for each further unit. Without reads there is no mean size (NaN): k.
          record: 'plumbline:capacity_pool_read_osds:count',
          local all = '%s / on (%s) %s' % [copies, labels.pool, rawRatio],
          expr: |||
            1
            + clamp_min(
              %(bytes)s
              / on (%(pool)s)
              %(reads)s
              - %(readBlock)d,
              0
            )
            / on (%(pool)s)
            plumbline:capacity_pool_read_unit:bytes
            < on (%(pool)s)
            %(all)s
            or on (%(pool)s)
            %(all)s
          ||| % (labels {
                   bytes: nested(perSecond('ceph_pool_rd_bytes')),
                   reads: nested(perSecond('ceph_pool_rd')),
                   all: all,
                 }),
        },
        {
          // Operations per second that clients ask of a class's OSDs.
          record: 'plumbline:capacity_asked:iops',
          expr: asked('ceph_pool_rd', 'plumbline:capacity_pool_read_osds:count', 'ceph_pool_wr', copies),
        },
        {
          record: 'plumbline:capacity_asked_busiest:iops',
          expr: |||
            quantile_over_time(%(quantile)g, plumbline:capacity_asked:iops[%(span)s])
            and
            present_over_time(plumbline:capacity_asked:iops[%(historyWindow)s] offset %(history)s)
          ||| % labels,
        },
        {
          // What one OSD of a class can do, in the mean: by its bench, and by what mClock measured when OSDs were made.
          record: 'plumbline:capacity_osd_measured:iops',
          expr: std.join('\nor\n', [
            labelled(bench('plumbline:baseline_in_force:iops', headroom.iops), 'measured_by', 'osd-bench'),
            labelled('avg by (%s) (plumbline:osd_capacity:iops)' % labels.class, 'measured_by', 'mclock'),
          ]) + '\n',
        },
        osds(
          'iops',
          'plumbline:capacity_asked:iops',
          'max by (%s) (plumbline:capacity_osd_measured:iops{measured_by="osd-bench"})' % labels.class,
        ),
        osds(
          'throughput',
          asked('ceph_pool_rd_bytes', '(%s > bool 0)' % copies, 'ceph_pool_wr_bytes', rawRatio),
          bench('plumbline:baseline_in_force:throughput_bytes_per_second', headroom.throughput),
        ),
        {
          // The port that is used most of those of its class, in either direction, ÷ what iperf3 brought through it.
          record: 'plumbline:capacity_demand:ratio',
          expr: |||
            max by (%(class)s) (
              max by (%(portOperation)s) (
                label_replace(rate(plumbline_nic_bytes_total[%(window)s]), "operation", "$1", "direction", "(.+)")
              )
              * on (%(interface)s) group_left (device_class)
              topk by (%(interface)s) (
                1,
                group by (%(portClass)s) (
                  plumbline_probe_target_info{device!=""}
                  * on (%(probe)s) group_left (device_class)
                  group by (%(probe)s, device_class) (plumbline_probe_info{layer="network",workload=~"%(network)s"})
                )
              )
              / on (%(nodeOperation)s) group_left ()
              max by (%(nodeOperation)s) (
                plumbline:baseline_in_force:throughput_bytes_per_second{layer="network",workload=~"%(network)s"}
              )
            )
          ||| % labels,
          labels: { layer: 'network', figure: 'throughput' },
        },
        {
          record: 'plumbline:capacity_headroom:ratio',
          expr: |||
            quantile_over_time(%(quantile)g, plumbline:capacity_demand:ratio[%(span)s])
            and
            present_over_time(plumbline:capacity_demand:ratio[%(historyWindow)s] offset %(history)s)
          ||| % labels,
        },
        {
          record: 'plumbline:capacity_recovery:bytes_per_second',
          expr: |||
            sum by (%(class)s) (
              %(recovered)s
              * on (%(daemon)s) group_left (device_class)
              plumbline:capacity_osd_location:info
            )
          ||| % (labels { recovered: nested(osd.one(config, 'rate(ceph_osd_recovery_bytes[%s])' % headroom.window)) }),
        },
        {
          record: 'plumbline:capacity_largest_host:bytes',
          expr: |||
            max by (%(class)s) (
              sum by (%(host)s) (plumbline:capacity_osd_used:bytes{host!=""})
            )
          ||| % labels,
        },
        {
          // The rate at which a byte was restored, in the mean over bytes: Σ rate² ÷ Σ rate. What trickles at the end of a
          // recovery, or after a restart, is little and counts little. Nothing where too little was restored to tell.
          record: 'plumbline:capacity_recovery_rate:bytes_per_second',
          expr: |||
            sum_over_time((plumbline:capacity_recovery:bytes_per_second ^ 2)[%(recoverySpan)s:%(window)s])
            /
            (
              sum_over_time(plumbline:capacity_recovery:bytes_per_second[%(recoverySpan)s:%(window)s])
              and on (%(class)s)
              (
                %(seconds)d * sum_over_time(plumbline:capacity_recovery:bytes_per_second[%(recoverySpan)s:%(window)s])
                > on (%(class)s)
                %(minimumShare)g * plumbline:capacity_largest_host:bytes
              )
            )
          ||| % labels,
        },
        {
          record: 'plumbline:capacity_rebuild:seconds',
          expr: 'plumbline:capacity_largest_host:bytes / on (%(class)s) plumbline:capacity_recovery_rate:bytes_per_second' % labels,
        },
      ],
    }],
  },
}

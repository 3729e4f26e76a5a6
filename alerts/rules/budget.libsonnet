// Where the time of one write goes, from the client down: the stack of seed 003's slide "Calculation of a single IO",
// live. Means throughout: they add up, percentiles don't.
//
//   whole    what the client waits for one 4 KiB write, one in flight
//   OSD      of it, from the message's arrival at the primary to its answer: queue + prepare + store + peers, the mean
//            over the OSDs of the class (osd_shares.libsonnet). A probe's objects are spread over them evenly, so each
//            counts once, however busy it is. All client writes are in it: where they are of other sizes than 4 KiB,
//            so is this.
//   network  a round trip to the primary, and one more from there to the replica, as far as that is waited for: where
//            the OSD's own store takes longer than the replicas, theirs is hidden behind it
//   device   one write and one flush of the slowest disk of an OSD: the least that a commit takes
//   client   what is left of the whole: librados or librbd, and the client's host
//
// Nothing is cut to fit. Where the parts exceed the whole (they were not measured on the same operations) there is no
// stack, and the rest is negative; where a device takes longer than the store, the store is not divided.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local budget = config.budget,
  local cluster = promql.clusterLabels(config),
  local labels = {
    cluster: promql.join(cluster),
    class: promql.join(cluster + ['device_class']),
    part: promql.join(cluster + ['device_class', 'part']),
    whole: promql.join(cluster + ['device_class', 'workload']),
    osd: promql.join(cluster + ['ceph_daemon']),
    ofClass: promql.join(cluster + ['ceph_daemon', 'device_class']),
    probe: promql.join(config.instanceLabels + ['probe']),
    disk: promql.join(config.instanceLabels + ['device']),
    window: config.ceph.window,
    rados: budget.radosWorkload,
    rbd: budget.rbdWorkloads,
  },

  local part(name) = 'max by (%s) (plumbline:budget_osd:seconds{part="%s"})' % [labels.class, name],
  local classed = 'topk by (%s) (1, group by (%s) (plumbline:osd:info))' % [labels.osd, labels.ofClass],

  local roundTrip(workload) =
    'avg by (%s) (plumbline_probe_latency_seconds{layer="network", workload="%s", statistic="mean"})' % [labels.cluster, workload],

  local deviceFits = |||
    plumbline:budget_device:seconds
    <= on (%(class)s)
    %(store)s
  ||| % (labels { store: part('store') }),

  // `time` by class, for each whole of that class whose parts fit.
  local stage(name, layer, time) = {
    record: 'plumbline:budget_stage:seconds',
    expr: |||
      0 * (plumbline:budget_rest:seconds >= 0)
      + on (%(class)s) group_left ()
      (
        %(time)s
      )
    ||| % (labels { time: promql.nested(time) }),
    labels: { stage: name, layer: layer },
  },

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-budget.rules',
      interval: config.paces.compared,
      rules: [
        {
          // Only of OSDs of which every part is known, so that the parts' means are parts of one mean.
          record: 'plumbline:budget_osd:seconds',
          expr: |||
            avg by (%(part)s) (
              plumbline:osd_write_part:seconds
              * on (%(osd)s) group_left (device_class)
              %(classed)s
              and on (%(osd)s)
              plumbline:osd_write_part:seconds{part="peers"}
            )
          ||| % (labels { classed: classed }),
        },
        {
          record: 'plumbline:budget_round_trip:seconds',
          expr: std.join('\nor on (%s)\n' % labels.cluster, [roundTrip(workload) for workload in budget.roundTrips]) + '\n',
        },
        {
          // By the kernel's histograms, else by its sums (diskstats). Without a flush of its own a write is all there is.
          record: 'plumbline:budget_device:seconds',
          expr: |||
            avg by (%(class)s) (
              max by (%(osd)s) (
                (
                  sum by (%(disk)s) (plumbline:disk_latency:mean_seconds{operation=~"write|flush"})
                  and on (%(disk)s)
                  plumbline:disk_latency:mean_seconds{operation="write"}
                  or on (%(disk)s)
                  sum by (%(disk)s) (
                    rate(plumbline_disk_io_seconds_total{operation=~"write|flush"}[%(window)s])
                    /
                    (rate(plumbline_disk_ios_total{operation=~"write|flush"}[%(window)s]) > 0)
                  )
                  and on (%(disk)s)
                  rate(plumbline_disk_ios_total{operation="write"}[%(window)s]) > 0
                )
                * on (%(disk)s) group_right ()
                plumbline:osd_disk:info
              )
              * on (%(osd)s) group_left (device_class)
              %(classed)s
            )
          ||| % (labels { classed: classed }),
        },
        {
          // Of a periodic probe only while the OSDs' means still hold its run.
          record: 'plumbline:budget_whole:seconds',
          expr: |||
            avg by (%(whole)s) (
              plumbline:canary_latency:seconds{layer="rados", workload="%(rados)s", operation="write", statistic="mean"}
              or
              plumbline_probe_latency_seconds{layer="rbd", workload=~"%(rbd)s", operation="write", statistic="mean"}
              and on (%(probe)s)
              changes(plumbline_probe_last_success_timestamp_seconds[%(window)s]) > 0
            )
          ||| % labels,
        },
        {
          // What no part accounts for; negative where the parts exceed the whole. Without a round trip the network is
          // in it.
          record: 'plumbline:budget_rest:seconds',
          expr: |||
            plumbline:budget_whole:seconds
            - on (%(class)s) group_left ()
            sum by (%(class)s) (plumbline:budget_osd:seconds)
            - on (%(cluster)s) group_left ()
            plumbline:budget_round_trip:seconds
            or on (%(whole)s)
            plumbline:budget_whole:seconds
            - on (%(class)s) group_left ()
            sum by (%(class)s) (plumbline:budget_osd:seconds)
          ||| % labels,
        },
        {
          // The whole of each stack there is: the stages below add up to it.
          record: 'plumbline:budget_stack:seconds',
          expr: |||
            plumbline:budget_whole:seconds
            and on (%(whole)s)
            plumbline:budget_rest:seconds >= 0
          ||| % labels,
        },
        {
          // The round trip to the replica, as far as it is waited for.
          record: 'plumbline:budget_replica_round_trip:seconds',
          expr: |||
            %(peers)s
            < on (%(cluster)s) group_left ()
            plumbline:budget_round_trip:seconds
            or on (%(class)s)
            0 * %(peers)s
            + on (%(cluster)s) group_left ()
            plumbline:budget_round_trip:seconds
          ||| % (labels { peers: part('peers') }),
        },
        stage('network', 'network', |||
          plumbline:budget_replica_round_trip:seconds
          + on (%(cluster)s) group_left ()
          plumbline:budget_round_trip:seconds
        ||| % labels),
        stage('device', 'disk', deviceFits),
        stage('store', 'osd', |||
          %(store)s
          - on (%(class)s)
          (
            %(fits)s
          )
          or on (%(class)s)
          %(store)s
        ||| % (labels { store: part('store'), fits: promql.nested(deviceFits) })),
        stage('osd', 'osd', 'sum by (%s) (plumbline:budget_osd:seconds{part=~"queue|prepare"})' % labels.class),
        stage('replica', 'osd', |||
          %(peers)s
          - on (%(class)s)
          plumbline:budget_replica_round_trip:seconds
          or on (%(class)s)
          %(peers)s
        ||| % (labels { peers: part('peers') })),
        {
          record: 'plumbline:budget_stage:seconds',
          expr: 'plumbline:budget_rest:seconds >= 0',
          labels: { stage: 'client', layer: 'client' },
        },
      ],
    }],
  },
}

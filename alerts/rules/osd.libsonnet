// OSDs as Ceph's own producers tell them, made one: whatever the release (16 to 20) and whoever exports the counters, the
// manager's module, the ceph-exporter or both. Every other rule, alert and panel reads these and no ceph_* counter.
//
// - One series for each OSD: `max`, because with both producers every counter exists twice, and around a manager's
//   failover under two instances. A mean, and a difference of two, is taken within one producer's series before that.
//   Where a failover changes `instance`, each of the two holds part of the window: rates read low for so long, means don't.
// - `job` and Ceph's `instance` appear nowhere: the first differs between cephadm, Rook and packages, the second is the
//   manager's.
local histograms = import '../lib/histogram.libsonnet';
local osd = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local window = config.ceph.window,
  local clusters = promql.clusterLabels(config),
  local labels = osd.labels(config) { window: window, drawn: config.osd.drawn },

  local one(expr) = osd.one(config, expr),

  local rate(names, suffix) = promql.rateOf(names, suffix, window),
  local mean(names) = promql.meanOf(names, window),
  local meanOf(name) = mean([name]),

  // A difference is small and may be off by a counter's resolution: never below zero.
  local positive(expr) = 'clamp_min(\n  %s,\n  0\n)' % promql.nested(expr),

  local operations = { read: 'r', write: 'w', 'read-modify-write': 'rw' },

  local latency(operation, part, expr) = {
    record: 'plumbline:osd_latency:mean5m',
    expr: one(expr),
    labels: { operation: operation, part: part },
  },

  local ofOperation(operation) =
    local name = 'ceph_osd_op_' + operations[operation];
    local total = name + '_latency';
    local process = name + '_process_latency';
    local prepare = name + '_prepare_latency';
    [
      {
        record: 'plumbline:osd_operations:rate5m',
        expr: one(rate([total], '_count')),
        labels: { operation: operation },
      },
      // from the message's arrival to the reply
      latency(operation, 'total', meanOf(total)),
      // the same without the queue
      latency(operation, 'process', meanOf(process)),
      // and without the wait for the commits, this OSD's own and its replicas'
      latency(operation, 'prepare', meanOf(prepare)),
      latency(operation, 'queue', positive('(%s)\n-\n(%s)' % [meanOf(total), meanOf(process)])),
      latency(operation, 'commit_wait', positive('(%s)\n-\n(%s)' % [meanOf(process), meanOf(prepare)])),
    ],

  // Part of the store → its counter, newest name first (they changed with Ceph 17).
  local store = {
    commit: ['ceph_bluestore_txc_commit_lat', 'ceph_bluestore_commit_lat'],
    device: ['ceph_bluestore_state_aio_wait_lat'],
    kv: ['ceph_bluestore_kv_sync_lat'],
    read: ['ceph_bluestore_read_lat'],
    submit: ['ceph_bluestore_txc_submit_lat', 'ceph_bluestore_submit_lat'],
  },

  local percentile(name, rank) = {
    record: 'plumbline:osd_latency:%s_seconds' % name,
    expr: |||
      max by (%(osd)s, operation) (
        histogram_quantile(%(rank)g, %(rate)s)
      ) >= 0
    ||| % (labels { rank: rank, rate: histograms(config).buckets('rate', 'plumbline_osd_latency_seconds', '[%s]' % window) }),
  },

  // With the device class. Of an OSD that is gone Ceph tells none: it is counted without.
  local ofClass(expr) = promql.joined(expr, labels.osd, 'device_class', 'plumbline:osd:info'),
  local overClass(record, aggregation, kept, expr) = {
    record: record,
    expr: |||
      %(aggregation)s by (%(class)s, %(kept)s) (
        %(expr)s
      )
    ||| % (labels { aggregation: aggregation, kept: kept, expr: promql.nested(ofClass(expr)) }),
  },
  // Of several classes and clusters together a page draws the mean: it needs the sum and how many OSDs are in it.
  local meanOverClass(name, kept, expr) = [
    overClass('plumbline:osd_class_%s:%s' % [name, aggregation], aggregation, kept, expr)
    for aggregation in ['sum', 'count']
  ],

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-osd.rules',
        interval: config.paces.compared,
        rules: std.flatMap(ofOperation, std.objectFields(operations)),
      },
      {
        name: 'plumbline-osd-store.rules',
        interval: config.paces.compared,
        rules: [
          {
            record: 'plumbline:osd_store_latency:mean5m',
            expr: one(mean(store[part])),
            labels: { part: part },
          }
          for part in std.objectFields(store)
        ] + [
          {
            // Operations of the store above bluestore_log_op_age (5 s). Ceph's check about them stays for a day; this says
            // whether it is so now.
            record: 'plumbline:osd_store_slow:rate5m',
            expr: one(rate(['ceph_bluestore_slow_' + part], '_count')),
            labels: { part: part },
          }
          for part in ['aio_wait', 'committed_kv', 'read_onode_meta', 'read_wait_aio']
        ] + [
          {
            // Of all OSDs that the daemons may ask: those that wait now, and the slow ones of the last ten minutes.
            record: 'plumbline:osd_%s_operations:count' % which,
            expr: 'sum by (%s) (plumbline_osd_%s_operations)' % [promql.join(clusters + ['stage']), which],
          }
          for which in ['blocked', 'slow']
        ] + [
          {
            // Only of OSDs whose database has a device of its own.
            record: 'plumbline:osd_database_used:ratio',
            expr: |||
              max by (%(osdOn)s) (plumbline_osd_database_used_bytes / (plumbline_osd_database_size_bytes > 0))
            ||| % osd.labels(config),
          },
          {
            // Which device class, host and networks. Two managers may disagree for a moment, and what joins this needs
            // one for each OSD. Where Ceph's hostnames are pods' names: the node whose daemon sees the OSD, else none.
            record: 'plumbline:osd:info',
            expr: |||
              topk by (%(osd)s) (1,
                group by (%(osd)s, device_class, hostname, front_iface, back_iface) (ceph_osd_metadata)
                unless on (%(cluster)s)
                plumbline:osd_hostname_wrong:info
                or on (%(osd)s)
                group by (%(osd)s, device_class, front_iface, back_iface) (ceph_osd_metadata)
                * on (%(osd)s) group_left (hostname)
                label_replace(plumbline:osd_host:info, "hostname", "$1", "instance", "([^:]+).*")
                or on (%(osd)s)
                group by (%(osd)s, device_class, front_iface, back_iface) (ceph_osd_metadata)
              )
            ||| % labels,
          },
        ],
      },
      {
        // Every bucket of every OSD, as with disks.
        name: 'plumbline-osd-tail.rules',
        interval: config.paces.compared,
        rules: [percentile('p99', 0.99)],
      },
      {
        // Drawn, and judged by nobody. A graph over all OSDs would read each of them at every point: of 2,000 a day took
        // 12 s.
        name: 'plumbline-osd-drawn.rules',
        interval: config.paces.drawn,
        rules: [
          percentile('p50', 0.5),
          overClass('plumbline:osd_class_operations:rate5m', 'sum', 'operation', 'plumbline:osd_operations:rate5m'),
        ] + meanOverClass('latency', 'operation', 'plumbline:osd_latency:mean5m{part="total"}')
        + meanOverClass('write_part', 'part', 'plumbline:osd_write_part:seconds')
        + meanOverClass('read_part', 'part', 'plumbline:osd_read_part:seconds')
        + meanOverClass('store_latency', 'part', 'plumbline:osd_store_latency:mean5m')
        + [
          {
            record: 'plumbline:osd_class_furthest:ratio',
            expr: 'topk by (%(class)s) (%(drawn)d, plumbline:osd_class:ratio)' % labels,
          },
          {
            record: 'plumbline:osd_heartbeat_furthest:seconds',
            expr: |||
              topk by (%(network)s) (%(drawn)d,
                max by (%(osd)s, interface) (plumbline_osd_heartbeat_seconds{statistic="worst"})
              )
            ||| % labels,
          },
          {
            record: 'plumbline:osd_heartbeat_median:seconds',
            expr: 'quantile by (%(network)s) (0.5, plumbline_osd_heartbeat_seconds{statistic="median"})' % labels,
          },
        ],
      },
    ],
  },
}

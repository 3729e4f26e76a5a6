// OSDs as Ceph's own producers tell them, made one: whatever the release (16 to 20) and whoever exports the counters, the
// manager's module, the ceph-exporter or both. Every other rule, alert and panel reads these and no ceph_* counter.
//
// - One series for each OSD: `max`, because with both producers every counter exists twice, and around a manager's
//   failover under two instances. A mean is taken within one producer's series before that.
// - `job` and Ceph's `instance` appear nowhere: the first differs between cephadm, Rook and packages, the second is the
//   manager's.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local window = config.ceph.window,
  local cluster = std.filter(function(label) label != 'instance', config.instanceLabels),
  local daemon = promql.join(cluster + ['ceph_daemon']),
  local labels = { daemon: daemon, window: window },

  // ceph-exporter 17.2.6 says "ceph-osd.0".
  local named(expr) = 'label_replace(\n  %s,\n  "ceph_daemon", "$1", "ceph_daemon", "ceph-(osd[.].+)"\n)' % expr,
  local one(expr) = 'max by (%s) (\n  %s\n)' % [daemon, promql.nested(named(promql.nested(expr)))],

  // Of two names of one counter the newer. Not by a pattern over names: while an OSD is upgraded both are in the window.
  local rate(names, suffix) = std.join(' or ', ['rate(%s%s[%s])' % [name, suffix, window] for name in names]),
  local mean(names) = '(%s)\n/\n((%s) > 0)' % [rate(names, '_sum'), rate(names, '_count')],
  local meanOf(name) = mean([name]),

  local operations = { read: 'r', write: 'w', 'read-modify-write': 'rw' },

  local latency(operation, part, expr) = {
    record: 'plumbline:osd_latency:mean5m',
    expr: expr,
    labels: { operation: operation, part: part },
  },
  // A difference of two means is small and may be off by a counter's resolution: never below zero.
  local difference(operation, of, without) = |||
    clamp_min(
      plumbline:osd_latency:mean5m{operation="%(operation)s", part="%(of)s"}
      - on (%(daemon)s)
      plumbline:osd_latency:mean5m{operation="%(operation)s", part="%(without)s"},
      0
    )
  ||| % (labels { operation: operation, of: of, without: without }),

  local ofOperation(operation) =
    local name = 'ceph_osd_op_' + operations[operation];
    [
      {
        record: 'plumbline:osd_operations:rate5m',
        expr: one('rate(%s_latency_count[%s])' % [name, window]),
        labels: { operation: operation },
      },
      // from the message's arrival to the reply
      latency(operation, 'total', one(meanOf(name + '_latency'))),
      // the same without the queue
      latency(operation, 'process', one(meanOf(name + '_process_latency'))),
      // and without the wait for the commits, this OSD's own and its replicas'
      latency(operation, 'prepare', one(meanOf(name + '_prepare_latency'))),
      latency(operation, 'queue', difference(operation, 'total', 'process')),
      latency(operation, 'commit_wait', difference(operation, 'process', 'prepare')),
    ],

  // Part of the store → its counter, newest name first (they changed with Ceph 17).
  local store = {
    commit: ['ceph_bluestore_txc_commit_lat', 'ceph_bluestore_commit_lat'],
    device: ['ceph_bluestore_state_aio_wait_lat'],
    kv: ['ceph_bluestore_kv_sync_lat'],
    read: ['ceph_bluestore_read_lat'],
    submit: ['ceph_bluestore_txc_submit_lat', 'ceph_bluestore_submit_lat'],
  },

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-osd.rules',
        rules: std.flatMap(ofOperation, std.objectFields(operations)),
      },
      {
        name: 'plumbline-osd-store.rules',
        rules: [
          {
            record: 'plumbline:osd_store_latency:mean5m',
            expr: one(mean(store[part])),
            labels: { part: part },
          }
          for part in std.objectFields(store)
        ] + [
          {
            // Which device class, host and networks: of two managers' copies one.
            record: 'plumbline:osd_info',
            expr: 'max by (%s, device_class, hostname, front_iface, back_iface) (ceph_osd_metadata)' % daemon,
          },
        ] + [
          {
            record: 'plumbline:osd_p%d:seconds' % q,
            expr: |||
              histogram_quantile(
                %(q)g,
                sum by (%(daemon)s, operation, le) (rate(plumbline_osd_latency_seconds_bucket[%(window)s]))
              ) >= 0
            ||| % (labels { q: q / 100 }),
          }
          for q in [50, 99]
        ],
      },
    ],
  },
}

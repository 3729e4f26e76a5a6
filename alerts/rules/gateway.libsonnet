// Gateways of RGW and NVMe-oF and metadata servers of CephFS as they tell it themselves, made one: by layer, gateway and
// operation, whatever the release (16 to 20) and whoever exports the counters.
//
// - One series for each gateway: `max`, because both of Ceph's producers may tell it.
// - What is judged is compared with equals, gateway by gateway, or with the past, for all gateways of a cluster together:
//   one that restarts, or hands over to another, has a new name and no past.
// - NVMe-oF: the names are those of its published exporter (ceph-nvmeof, control/prometheus.py).
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local gateway = config.gateway,
  local window = config.ceph.window,
  local clusters = promql.clusterLabels(config),
  local nested = promql.nested,
  local operation = clusters + ['layer', 'operation'],
  local labels = gateway {
    window: window,
    daemon: promql.join(clusters + ['ceph_daemon']),
    cluster: promql.join(clusters),
    id: promql.join(clusters + ['instance_id']),
    gateway: promql.join(clusters + ['gateway']),
    one: promql.join(operation + ['gateway']),
    operation: promql.join(operation),
    figure: promql.join(operation + ['figure']),
    compared: std.join('|', gateway.compared),
  },

  // RGW has a number in its counters and its name elsewhere. The ceph-exporter gives it a number of its own that nobody
  // else knows, so what it tells counts only in a cluster whose manager does not tell the same: else each gateway is two.
  local ofRgw(expr) = |||
    max by (%(gateway)s) (
      label_replace(
        (
          %(expr)s
        )
        * on (%(id)s) group_left (ceph_daemon)
        plumbline:rgw:info
        or on (%(cluster)s)
        label_replace(
          %(expr)s,
          "ceph_daemon", "rgw.$1", "instance_id", "(.+)"
        ),
        "gateway", "$1", "ceph_daemon", "(.+)"
      )
    )
  ||| % (labels { expr: nested(nested(nested(expr))) }),

  local ofMds(expr) = |||
    max by (%(gateway)s) (
      label_replace(
        %(expr)s,
        "gateway", "$1", "ceph_daemon", "(.+)"
      )
    )
  ||| % (labels { expr: nested(nested(expr)) }),

  // Its exporter runs in the gateway, so the target is the gateway.
  local ofNvmeof(expr) = |||
    max by (%(gateway)s) (
      label_replace(
        sum by (%(instance)s) (%(expr)s),
        "gateway", "nvmeof.$1", "instance", "(.+?)(?::\\d+)?"
      )
    )
  ||| % (labels { expr: expr, instance: promql.join(clusters + ['instance']) }),

  local rate(names, suffix) = promql.rateOf(names, suffix, window),
  local mean(names) = promql.meanOf(names, window),
  local total(metric) = 'rate(ceph_nvmeof_bdev_%s_total[%s])' % [metric, window],

  // Layer → operation → its figures. Names of counters: the newest first (RGW's changed with Ceph 19).
  local rgw(name) = ['ceph_rgw_op_%s_obj_lat' % name, 'ceph_rgw_%s_initial_lat' % name],
  local figures = {
    object: {
      [name]: {
        operations: ofRgw(rate(rgw(name), '_count')),
        latency: ofRgw(mean(rgw(name))),
        size: ofRgw('(%s)\n/\n((%s) > 0)' % [
          rate(['ceph_rgw_op_%s_obj_bytes' % name, 'ceph_rgw_%s_b' % name], ''),
          rate(['ceph_rgw_op_%s_obj_ops' % name, 'ceph_rgw_%s' % name], ''),
        ]),
      }
      for name in ['get', 'put']
    },
    filesystem: {
      [name]: {
        operations: ofMds(rate(['ceph_mds_server_req_%s_latency' % name], '_count')),
        latency: ofMds(mean(['ceph_mds_server_req_%s_latency' % name])),
      }
      for name in ['create', 'getattr', 'lookup', 'open', 'readdir', 'unlink']
    },
    client: {
      [name]: {
        local done = total(name + 's_completed'),
        operations: ofNvmeof(done),
        latency: |||
          %s
          /
          (%s > 0)
        ||| % [std.rstripChars(ofNvmeof(total(name + '_seconds')), '\n'), std.rstripChars(ofNvmeof(done), '\n')],
      }
      for name in ['read', 'write']
    },
  },
  local records = { operations: 'operations:rate5m', latency: 'latency:mean5m', size: 'size:bytes' },
  local recorded(layer) = [
    {
      record: 'plumbline:gateway_' + records[figure],
      expr: figures[layer][name][figure],
      labels: { layer: layer, operation: name },
    }
    for name in std.objectFields(figures[layer])
    for figure in ['operations', 'latency', 'size']
    if figure in figures[layer][name]
  ],

  // Of all gateways of a cluster together: each counts by its operations.
  local together(metric) = |||
    sum by (%(operation)s) (plumbline:gateway_%(metric)s * on (%(one)s) plumbline:gateway_operations:rate5m)
    /
    (sum by (%(operation)s) (plumbline:gateway_operations:rate5m) >= %(minimumOperationsPerSecond)g)
  ||| % (labels { metric: metric }),

  local days = std.join('\nor\n', [
    'label_replace(plumbline:gateway_hour:figure offset %s, "day", "%s", "", "")' % [day, day]
    for day in gateway.pastDays
  ]),

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-gateway.rules',
        interval: config.paces.compared,
        rules: [
          {
            record: 'plumbline:rgw:info',
            expr: |||
              topk by (%(id)s) (1,
                group by (%(id)s, ceph_daemon, hostname) (ceph_rgw_metadata)
              )
            ||| % labels,
          },
        ] + recorded('object') + [
          {
            // Of all requests, whatever they ask for; a failure may be the client's.
            record: 'plumbline:gateway_requests:rate5m',
            expr: ofRgw('rate(ceph_rgw_req[%s])' % window),
            labels: { layer: 'object' },
          },
          {
            record: 'plumbline:gateway_failed:rate5m',
            expr: ofRgw('rate(ceph_rgw_failed_req[%s])' % window),
            labels: { layer: 'object' },
          },
          {
            record: 'plumbline:gateway_in_progress:count',
            expr: ofRgw('ceph_rgw_qactive'),
            labels: { layer: 'object' },
          },
        ],
      },
      {
        name: 'plumbline-gateway-other.rules',
        interval: config.paces.compared,
        rules: recorded('filesystem') + recorded('client') + [
          {
            record: 'plumbline:mds_journal_latency:mean5m',
            expr: ofMds(mean(['ceph_mds_log_jlat'])),
          },
        ],
      },
      {
        name: 'plumbline-gateway-compared.rules',
        interval: config.paces.compared,
        rules: [
          {
            // 1 is as the others. Not of one that moves larger objects than they.
            record: 'plumbline:gateway_latency_peers:ratio',
            expr: |||
              (
                plumbline:gateway_latency:mean5m{layer=~"%(compared)s"}
                and on (%(one)s)
                plumbline:gateway_operations:rate5m >= %(minimumOperationsPerSecond)g
                unless on (%(one)s)
                (
                  plumbline:gateway_size:bytes
                  > on (%(operation)s) group_left ()
                  %(comparableSize)g * quantile by (%(operation)s) (0.5, plumbline:gateway_size:bytes)
                )
              )
              / on (%(operation)s) group_left ()
              (
                quantile by (%(operation)s) (0.5, plumbline:gateway_latency:mean5m) > 0
                and on (%(operation)s)
                count by (%(operation)s) (plumbline:gateway_latency:mean5m) >= %(minimumGateways)d
              )
            ||| % labels,
          },
          {
            record: 'plumbline:gateway_cluster:figure',
            expr: together('latency:mean5m'),
            labels: { figure: 'latency' },
          },
          {
            record: 'plumbline:gateway_cluster:figure',
            expr: together('size:bytes'),
            labels: { figure: 'size' },
          },
          {
            // Of the requests of a minute with next to none any failure would be a large share.
            record: 'plumbline:gateway_cluster:figure',
            expr: |||
              sum by (%(ofLayer)s) (plumbline:gateway_failed:rate5m)
              /
              (sum by (%(ofLayer)s) (plumbline:gateway_requests:rate5m) >= %(minimumOperationsPerSecond)g)
            ||| % (labels { ofLayer: promql.join(clusters + ['layer']) }),
            labels: { figure: 'failed', operation: 'request' },
          },
          {
            record: 'plumbline:gateway_hour:figure',
            expr: |||
              quantile_over_time(0.5, plumbline:gateway_cluster:figure[%(longWindow)s])
              and
              %(seen)s
            ||| % (labels {
                     seen: promql.seen(config, 'plumbline:gateway_cluster:figure', labels.longWindow, config.seen.slots.slow),
                   }),
          },
          {
            // What is usual at this hour: the median of the past days.
            record: 'plumbline:gateway_usual:figure',
            expr: |||
              quantile by (%(figure)s) (
                0.5,
                %(days)s
              )
              and on (%(figure)s)
              count by (%(figure)s) (
                %(days)s
              ) >= %(minimumPastDays)d
            ||| % (labels { days: nested(days) }),
          },
          {
            // 1 is as usual. Nothing is said where objects are larger than ever.
            record: 'plumbline:gateway_latency_past:ratio',
            expr: |||
              max by (%(operation)s) (
                plumbline:gateway_hour:figure{figure="latency"}
                / on (%(figure)s)
                (plumbline:gateway_usual:figure > 0)
                unless on (%(operation)s)
                (
                  plumbline:gateway_hour:figure{figure="size"}
                  > on (%(figure)s)
                  %(comparableSize)g * plumbline:gateway_usual:figure
                )
              )
            ||| % labels,
          },
        ],
      },
    ],
  },
}

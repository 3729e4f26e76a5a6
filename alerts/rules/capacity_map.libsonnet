// What there is to fill: OSDs with their place in CRUSH and how full they are, pools, and whether a pool can restore its
// copies after a loss. From the cluster's map as a daemon with a key reads it; where no map is known, from the manager's
// metrics: the hostname is the host then, and nothing is said of pools' failure domains. Where each of many OSDs has a hostname of
// its own and no node's daemon sees which are together, it may be a pod's: no host is known.
local osd = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local capacity = config.capacity,
  local clusters = promql.clusterLabels(config),
  local by(more) = promql.join(clusters + more),
  local nested = promql.nested,
  local labels = {
    cluster: by([]),
    instance: promql.join(config.instanceLabels),
    daemon: by(['ceph_daemon']),
    database: promql.join(config.instanceLabels + ['device']),
    class: by(['device_class']),
    place: by(['ceph_daemon', 'device_class', 'root', 'rack', 'host']),
    root: by(['root']),
    rootClass: by(['root', 'device_class']),
    domain: by(['root', 'device_class', 'failure_domain']),
    bucket: by(['ceph_daemon', 'bucket_type', 'bucket']),
    typed: by(['ceph_daemon', 'bucket_type']),
    placed: by(['ceph_daemon', 'device_class', 'root', 'host', 'failure_domain', 'bucket']),
    limit: by(['limit']),
    pool: by(['pool_id']),
    named: by(['pool_id', 'pool']),
    info: by(['pool_id', 'pool', 'pool_type', 'failure_domain', 'root', 'device_class']),
    infoOfAnyClass: by(['pool_id', 'pool', 'pool_type', 'failure_domain', 'root']),
    stale: promql.seconds(capacity.staleMap),
    bridge: capacity.bridge,
  },

  // Several nodes may read the map; what one of them read long ago doesn't count.
  local fresh(metric) = |||
    %(metric)s
    and on (%(instance)s)
    (time() - plumbline_ceph_map_timestamp_seconds < %(stale)d)
  ||| % (labels { metric: metric }),
  local freshest(key, metric) = 'max by (%s) (\n  %s\n)' % [labels[key], nested(fresh(metric))],

  // What an OSD says by itself in `metric`, of the map or else of the manager.
  local ofOsd(ours, cephs) = |||
    (
      %(ours)s
      or on (%(daemon)s)
      %(cephs)s
    )
  ||| % (labels {
           ours: nested(freshest('daemon', ours)),
           cephs: nested(osd.one(config, 'last_over_time(%s[%s])' % [cephs, labels.bridge])),
         }),

  local ofPool(ours, cephs) = |||
    %(ours)s
    * on (%(pool)s) group_left (pool)
    plumbline:capacity_pool:info
    or on (%(pool)s)
    max by (%(pool)s) (last_over_time(%(cephs)s[%(bridge)s]))
    * on (%(pool)s) group_left (pool)
    plumbline:pool:info
  ||| % (labels { ours: freshest('pool', ours), cephs: cephs }),

  local onDatabase = |||
    group by (%(database)s, ceph_daemon) (
      label_replace(plumbline_disk_use_info{use=~"osd-(db|wal)"}, "ceph_daemon", "$1", "user", "(.+)")
    )
    unless on (%(database)s, ceph_daemon)
    label_replace(plumbline_disk_use_info{use="osd"}, "ceph_daemon", "$1", "user", "(.+)")
  ||| % labels,

  local labelled = promql.labelled,
  local copied = promql.copied,

  // How many failure domains a rule can choose from: of one device class, and of all where it takes any.
  local domains(series, domain, name) = |||
    count by (%(rootClass)s%(domain)s) (
      group by (%(rootClass)s%(domain)s, %(name)s) (%(series)s)
    )
    or
    count by (%(root)s%(domain)s) (
      group by (%(root)s%(domain)s, %(name)s) (%(series)s)
    )
  ||| % (labels { series: series, domain: domain, name: name }),

  local perClass(record, operation, metric) = {
    record: 'plumbline:capacity_' + record,
    expr: '%s by (%s) (plumbline:capacity_osd_%s)' % [operation, labels.class, metric],
  },

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-capacity-map.rules',
        interval: config.paces.compared,
        rules: [
          {
            // topk: two nodes may have read the map before and after an OSD moved.
            record: 'plumbline:capacity_osd_location:info',
            expr: |||
              topk by (%(daemon)s) (
                1,
                group by (%(place)s) (
                  %(map)s
                )
                or on (%(cluster)s)
                group by (%(place)s) (
                  label_replace(plumbline:osd:info, "host", "$1", "hostname", "(.+)")
                  unless on (%(cluster)s)
                  (
                    count by (%(cluster)s) (plumbline:osd:info) > %(loneOsds)d
                    == on (%(cluster)s)
                    count by (%(cluster)s) (group by (%(hostname)s) (plumbline:osd:info{hostname!=""}))
                    unless on (%(cluster)s)
                    plumbline:osd_host:info
                  )
                  or on (%(daemon)s)
                  plumbline:osd:info
                )
              )
            ||| % (labels {
                     loneOsds: config.capacity.loneOsds, hostname: by(['hostname']), map: nested(nested(fresh('plumbline_ceph_osd_crush_location_info'))) }),
          },
          {
            // Of OSDs that are to hold data: one that is out, or has no weight in CRUSH, is being emptied.
            record: 'plumbline:capacity_osd_size:bytes',
            expr: |||
              %(size)s
              > 0
              and on (%(daemon)s)
              %(in)s == 1
              unless on (%(daemon)s)
              %(weight)s == 0
            ||| % (labels {
                     size: std.rstripChars(|||
                       (
                         %s
                         * on (%s) group_left (device_class, root, rack, host)
                         plumbline:capacity_osd_location:info
                       )
                     ||| % [nested(ofOsd('plumbline_ceph_osd_size_bytes', 'ceph_osd_stat_bytes')), labels.daemon], '\n'),
                     weight: freshest('daemon', 'plumbline_ceph_osd_crush_weight'),
                     'in': std.rstripChars(ofOsd('plumbline_ceph_osd_in', 'ceph_osd_in'), '\n'),
                   }),
          },
          {
            // The host, the rack, and whatever other buckets the map's author put above: each a failure domain.
            record: 'plumbline:capacity_osd_domain:info',
            expr: |||
              group by (%(placed)s) (
                %(host)s
                or
                %(rack)s
                or
                %(others)s
              )
            ||| % (labels {
                     host: nested(labelled(copied('plumbline:capacity_osd_size:bytes{host!=""}', 'bucket', 'host'), 'failure_domain', 'host')),
                     rack: nested(labelled(copied('plumbline:capacity_osd_size:bytes{rack!=""}', 'bucket', 'rack'), 'failure_domain', 'rack')),
                     others: nested(copied(|||
                       topk by (%(typed)s) (
                         1,
                         group by (%(bucket)s) (
                           %(map)s
                         )
                       )
                       * on (%(daemon)s) group_left (device_class, root, host)
                       plumbline:capacity_osd_size:bytes
                     ||| % (labels { map: nested(nested(fresh('plumbline_ceph_osd_crush_bucket_info'))) }), 'failure_domain', 'bucket_type')),
                   }),
          },
          {
            record: 'plumbline:capacity_osd_used:bytes',
            expr: |||
              0 * plumbline:capacity_osd_size:bytes
              + on (%(daemon)s) group_left ()
              %(used)s
            ||| % (labels {
                     used: std.rstripChars(ofOsd('plumbline_ceph_osd_used_bytes', 'ceph_osd_stat_bytes_used'), '\n'),
                   }),
          },
          {
            // What fails together: the OSDs whose database or log is on one disk, which is not the disk with their data.
            record: 'plumbline:capacity_database_osds:count',
            expr: 'count by (%s) (\n  %s\n)\n' % [labels.database, nested(onDatabase)],
          },
          {
            record: 'plumbline:capacity_database_used:bytes',
            expr: |||
              sum by (%(database)s) (
                (
                  %(users)s
                )
                * on (%(daemon)s) group_left ()
                max by (%(daemon)s) (plumbline:capacity_osd_used:bytes)
              )
            ||| % (labels { users: nested(nested(onDatabase)) }),
          },
          {
            record: 'plumbline:capacity_osd_used:ratio',
            expr: 'plumbline:capacity_osd_used:bytes / plumbline:capacity_osd_size:bytes',
          },
          perClass('size:bytes', 'sum', 'size:bytes'),
          perClass('used:bytes', 'sum', 'used:bytes'),
          { record: 'plumbline:capacity_used:ratio', expr: 'plumbline:capacity_used:bytes / plumbline:capacity_size:bytes' },
          perClass('fullest:ratio', 'max', 'used:ratio'),
          {
            record: 'plumbline:capacity_limit:ratio',
            expr: std.join('\nor on (%(limit)s)\n' % labels, [freshest('limit', 'plumbline_ceph_full_ratio')] + [
              labelled(
                'group by (%s) (plumbline:capacity_size:bytes) * %g' % [labels.cluster, capacity.limits[limit]],
                'limit',
                limit
              )
              for limit in std.objectFields(capacity.limits)
            ]) + '\n',
          },
        ],
      },
      {
        name: 'plumbline-capacity-pool.rules',
        interval: config.paces.compared,
        rules: [
          {
            // A rule that takes any class takes this one, where its root has no other.
            record: 'plumbline:capacity_pool:info',
            expr: |||
              topk by (%(pool)s) (
                1,
                group by (%(info)s) (
                  %(known)s
                )
                or on (%(pool)s)
                group by (%(infoOfAnyClass)s) (
                  %(any)s
                )
                * on (%(root)s) group_left (device_class)
                (
                  group by (%(rootClass)s) (plumbline:capacity_osd_size:bytes)
                  and on (%(root)s)
                  (count by (%(root)s) (group by (%(rootClass)s) (plumbline:capacity_osd_size:bytes)) == 1)
                )
                or on (%(pool)s)
                group by (%(info)s) (
                  %(any)s
                )
              )
            ||| % (labels {
                     known: nested(nested(fresh('plumbline_ceph_pool_info{device_class!=""}'))),
                     any: nested(nested(fresh('plumbline_ceph_pool_info{device_class=""}'))),
                   }),
          },
          {
            record: 'plumbline:capacity_pool_copies:count',
            expr: freshest('pool', 'plumbline_ceph_pool_copies'),
          },
          {
            // Raw bytes for each byte stored.
            record: 'plumbline:capacity_pool_raw:ratio',
            expr: freshest('pool', 'plumbline_ceph_pool_raw_ratio'),
          },
          {
            // Of erasure coded pools whose reads ask only the OSDs that hold what is wanted.
            record: 'plumbline:capacity_pool_read_unit:bytes',
            expr: freshest('pool', 'plumbline_ceph_pool_read_unit_bytes'),
          },
          {
            record: 'plumbline:capacity_domains:count',
            expr: labelled(domains('plumbline:capacity_osd_size:bytes{root!=""}', '', 'ceph_daemon'), 'failure_domain', 'osd')
                  + '\nor\n'
                  + domains('plumbline:capacity_osd_domain:info{root!=""}', ', failure_domain', 'bucket'),
          },
          {
            // 1: after losing one failure domain there are enough others for all copies. With one copy nothing is
            // restored.
            record: 'plumbline:capacity_pool_heals:bool',
            expr: |||
              (
                plumbline:capacity_pool:info
                * on (%(domain)s) group_left ()
                plumbline:capacity_domains:count
                > bool on (%(pool)s) group_left ()
                plumbline:capacity_pool_copies:count
              )
              * on (%(pool)s) group_left ()
              (plumbline:capacity_pool_copies:count > bool 1)
            ||| % labels,
          },
          {
            record: 'plumbline:capacity_self_healing:bool',
            expr: 'max by (%(named)s) (plumbline:capacity_pool_heals:bool)' % labels,
          },
          {
            record: 'plumbline:capacity_pool_stored:bytes',
            expr: ofPool('plumbline_ceph_pool_stored_bytes', 'ceph_pool_stored'),
          },
          {
            record: 'plumbline:capacity_pool_max_avail:bytes',
            expr: ofPool('plumbline_ceph_pool_max_avail_bytes', 'ceph_pool_max_avail'),
          },
        ],
      },
    ],
  },
}

// What is left after losing a host, a rack or a room, how fast it fills, and when that ends. All in proportion: what is lost is
// spread over the others as their data is spread now, and growth goes where data is. docs/capacity.md has the formulas.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local capacity = config.capacity,
  local verdict = capacity.verdict,
  local clusters = promql.clusterLabels(config),
  local by(more) = promql.join(clusters + more),
  local nested = promql.nested,
  local labels = {
    cluster: by([]),
    class: by(['device_class']),
    pool: by(['pool_id']),
    named: by(['pool_id', 'pool']),
    root: by(['root']),
    host: by(['device_class', 'root', 'rack', 'host']),
    rootClass: by(['root', 'device_class']),
    // what can be lost: `name` is a host, a rack or another bucket (`domain`), its data goes to the others of the root,
    // or of the bucket in `scope`
    domain: by(['root', 'failure_domain']),
    domainClass: by(['root', 'device_class', 'failure_domain']),
    daemon: by(['ceph_daemon']),
    others: by(['device_class', 'root', 'scope', 'domain']),
    lost: by(['device_class', 'root', 'scope', 'domain', 'name']),
    day: promql.seconds('1d'),
    assumedCopies: capacity.assumedCopies,
    historyWindow: capacity.historyWindow,
  },

  local labelled = promql.labelled,
  local copied = promql.copied,
  local times(factor, expr) = '%d * (\n  %s\n)' % [factor, nested(expr)],
  local any(exprs) = std.join('\nor\n', exprs),

  // Roots and device classes with such a pool; a pool of any class is on all of its root.
  local with(pools) = any([
    'group by (%s) (%s)' % [labels.rootClass, std.strReplace(pools, '{', '{device_class!="",')],
    |||
      (
        group by (%s) (plumbline:capacity_osd_size:bytes)
        and on (%s)
        %s
      )
    ||| % [labels.rootClass, labels.root, std.strReplace(pools, '{', '{device_class="",')],
  ]),

  // Failure domains of roots and device classes with such a pool, other than single OSDs.
  local domainsWith(pools) = any([
    'group by (%s) (%s)' % [labels.domainClass, std.strReplace(pools, '{', '{device_class!="",failure_domain!="osd",')],
    |||
      (
        group by (%s) (plumbline:capacity_osd_domain:info)
        and on (%s)
        %s
      )
    ||| % [labels.domainClass, labels.domain, std.strReplace(pools, '{', '{device_class="",')],
  ]),

  // OSDs as parts of all that can be lost with them. Copied again, hence worth a figure, is: what pools that heal lose
  // with a domain; a host, where single OSDs are the domain; and a host's share inside its rack (or row, or room), where
  // every rack has a copy already.
  local parts(metric) =
    local losing(what, select) = |||
      (
        plumbline:capacity_osd_domain:info%s
        * on (%s) group_left ()
        %s
      )
      and on (%s)
      plumbline:capacity_lost_with:info{lost="%s"}
    ||| % [select, labels.daemon, metric, labels.domainClass, what];
    any([
      copied(copied(losing('domain', ''), 'name', 'bucket'), 'domain', 'failure_domain'),
      labelled(copied(copied(losing('host', '{failure_domain!="host",host!=""}'), 'name', 'host'), 'scope', 'bucket'), 'domain', 'host'),
    ]),

  local over(operation, metric) = '%s by (%s) (\n  %s\n)\n' % [operation, labels.lost, nested(parts(metric))],

  // A least squares slope over what was recorded as one series: a manager's failover is no step in it.
  local slopes(record, metric) = [
    {
      record: record,
      expr: |||
        deriv(%(metric)s[%(slope)s])
        and
        %(metric)s
        and
        present_over_time(%(metric)s[%(historyWindow)s] offset %(history)s)
      ||| % (labels { metric: metric } + each),
      labels: { slope: each.slope },
    }
    for each in capacity.slopes
  ],

  // Nothing where it doesn't grow: there is no such day.
  local days(room, growth, key) = |||
    %(room)s
    / on (%(key)s) group_right ()
    (%(growth)s > 0)
    / %(day)d
  ||| % (labels { room: room, growth: growth, key: labels[key] }),

  // How much more fits in proportion to what is there, until `share` of a limit is all of it.
  local proportional(share) = |||
    plumbline:capacity_used:bytes
    * on (%(class)s)
    (
      1
      /
      (
        %(share)s
        > 0
      )
      - 1
    )
  ||| % (labels { share: std.strReplace(std.rstripChars(share, '\n'), '\n', '\n      ') }),

  prometheusRules+:: {
    groups+: [
      {
        name: 'plumbline-capacity-loss.rules',
        interval: config.paces.compared,
        rules: [
          {
            record: 'plumbline:capacity_lost_with:info',
            local heals(value) = 'plumbline:capacity_pool_heals:bool{} == %d' % value,
            local host(exprs) = labelled(labelled(any(exprs), 'failure_domain', 'host'), 'lost', 'domain'),
            expr: any([
              labelled(domainsWith(heals(1)), 'lost', 'domain'),
              labelled(domainsWith(heals(0)), 'lost', 'host'),
              host([
                with('plumbline:capacity_pool_heals:bool{failure_domain="osd"}'),
                |||
                  count by (%(rootClass)s) (
                    group by (%(rootClass)s, host) (plumbline:capacity_osd_size:bytes{root="",host!=""})
                  ) > %(assumedCopies)d
                  unless on (%(rootClass)s)
                  plumbline:capacity_osd_size:bytes{root="",host=""}
                ||| % labels,
              ]),
            ]) + '\n',
          },
          { record: 'plumbline:capacity_lost:bytes', expr: over('sum', 'plumbline:capacity_osd_used:bytes') },
          { record: 'plumbline:capacity_lost_fullest:ratio', expr: over('max', 'plumbline:capacity_osd_used:ratio') },
          {
            record: 'plumbline:capacity_lost_top:ratio',
            expr: 'topk by (%(others)s) (1, plumbline:capacity_lost_fullest:ratio)' % labels,
          },
          {
            // The fullest OSD that is left: of the host that has the fullest of all it is the next host's.
            record: 'plumbline:capacity_left_fullest:ratio',
            expr: |||
              (
                0 * plumbline:capacity_lost_fullest:ratio
                + on (%(others)s) group_left ()
                plumbline:capacity_lost_top:ratio
                unless on (%(lost)s)
                plumbline:capacity_lost_top:ratio
              )
              or on (%(lost)s)
              (
                0 * plumbline:capacity_lost_top:ratio
                + on (%(others)s) group_left ()
                max by (%(others)s) (
                  plumbline:capacity_lost_fullest:ratio
                  unless on (%(lost)s)
                  plumbline:capacity_lost_top:ratio
                )
              )
            ||| % labels,
          },
          {
            // The fullest OSD once the others hold what was lost as well.
            record: 'plumbline:capacity_after_loss:ratio',
            expr: |||
              plumbline:capacity_left_fullest:ratio
              * on (%(others)s) group_left ()
              sum by (%(others)s) (plumbline:capacity_lost:bytes)
              / on (%(lost)s)
              (
                0 * plumbline:capacity_lost:bytes
                + on (%(others)s) group_left ()
                sum by (%(others)s) (plumbline:capacity_lost:bytes)
                - on (%(lost)s)
                plumbline:capacity_lost:bytes
                > 0
              )
              or on (%(lost)s)
              (
                plumbline:capacity_left_fullest:ratio
                and on (%(others)s)
                (sum by (%(others)s) (plumbline:capacity_lost:bytes) == 0)
              )
            ||| % labels,
          },
          {
            // Above 1 Ceph does not copy all of it.
            record: 'plumbline:capacity_host_loss:ratio',
            expr: |||
              max by (%(class)s) (
                plumbline:capacity_after_loss:ratio
                / on (%(cluster)s) group_left ()
                max by (%(cluster)s) (plumbline:capacity_limit:ratio{limit="backfillfull"})
              )
            ||| % labels,
          },
          {
            // What to say of it (config): the worst that holds for some pool of the class.
            record: 'plumbline:capacity_host_loss:verdict',
            expr: |||
              max by (%(class)s) (
                %(verdicts)s
              )
            ||| % (labels {
                     verdicts: nested(any([
                       labelled('%d * (plumbline:capacity_host_loss:ratio > bool 1)' % verdict.full, 'why', 'full'),
                       labelled(
                         times(verdict.copies, with('plumbline:capacity_pool_heals:bool{failure_domain!="osd"} == 0')), 'why', 'copies'
                       ),
                       labelled(times(verdict.data, with('plumbline:capacity_pool_heals:bool{failure_domain="osd"}')), 'why', 'domain'),
                       labelled(
                         times(verdict.data, with('(plumbline:capacity_pool:info{} and on (%s) plumbline:capacity_pool_copies:count == 1)' % labels.pool)),
                         'why', 'copy'
                       ),
                       labelled(
                         times(verdict.data, |||
                           count by (%(class)s) (
                             group by (%(host)s) (plumbline:capacity_osd_size:bytes{host!=""})
                           ) == 1
                           unless on (%(class)s)
                           plumbline:capacity_osd_size:bytes{host=""}
                         ||| % labels), 'why', 'host'
                       ),
                     ])),
                   }),
          },
          {
            // How much more may be written; below zero: how much is too much.
            record: 'plumbline:capacity_host_loss_left:bytes',
            expr: proportional('plumbline:capacity_host_loss:ratio'),
          },
        ],
      },
      {
        name: 'plumbline-capacity-growth.rules',
        interval: config.paces.compared,
        rules:
          slopes('plumbline:capacity_growth:bytes_per_second', 'plumbline:capacity_used:bytes')
          + slopes('plumbline:capacity_pool_growth:bytes_per_second', 'plumbline:capacity_pool_stored:bytes')
          + [
            {
              // Until the first OSD is full: then every pool that is on it refuses writes.
              record: 'plumbline:capacity_left:bytes',
              expr: 'clamp_min(\n  %s,\n  0\n)\n' % nested(proportional(|||
                plumbline:capacity_fullest:ratio
                / on (%(cluster)s) group_left ()
                max by (%(cluster)s) (plumbline:capacity_limit:ratio{limit="full"})
              ||| % labels)),
            },
            {
              record: 'plumbline:capacity_time_to_full:days',
              expr: days('plumbline:capacity_left:bytes', 'plumbline:capacity_growth:bytes_per_second', 'class'),
            },
            {
              record: 'plumbline:capacity_pool_time_to_full:days',
              expr: days('plumbline:capacity_pool_max_avail:bytes', 'plumbline:capacity_pool_growth:bytes_per_second', 'named'),
            },
            {
              record: 'plumbline:capacity_time_to_host_loss_unsafe:days',
              expr: days('(plumbline:capacity_host_loss_left:bytes > 0)', 'plumbline:capacity_growth:bytes_per_second', 'class'),
            },
          ],
      },
    ],
  },
}

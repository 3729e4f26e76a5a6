// Which host an OSD is on, also while that host is down, whether the cluster moves data, and what else waits to be done.
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.clusterLabels(config),
  local labels = osds.labels(config) {
    hostOf: promql.join(clusters + ['instance', 'hostname']),
    up: 'up{%s}' % config.plumblineSelector,
    remember: config.osdHosts.remember,
  },

  // What a host's own daemon says: the disks it sees, and whose data is on them.
  local seen(uses) = |||
    group by (%(osdOn)s) (label_replace(%(uses)s, "ceph_daemon", "$1", "user", "(.+)"))
  ||| % (labels { uses: uses }),

  local uses = 'plumbline_disk_use_info{use="osd",user=~"osd[.].+"}',

  local nested = promql.nested,

  // Ceph's word: whatever states there are, on whichever manager speaks or spoke last.
  local moving = std.join('\nor\n', [
    'label_replace(ceph_pg_%s, "state", "%s", "", "")' % [state, state]
    for state in config.recovery.pgStates
  ]),

  // Over a span that begins within the recovery.
  local pace(span) = |||
    label_replace(
      -deriv(plumbline:recovery_left:copies[%(span)s]) > 0
      and plumbline:recovery_left:copies offset %(span)s > plumbline:recovery_left:copies,
      "span", "%(span)s", "", ""
    )
  ||| % { span: span },

  local background = config.background,

  // Placement groups that wait for this work.
  local waiting(work, expr) = { record: 'plumbline:background_left:count', labels: { work: work }, expr: expr },

  // How long these works still take; nothing while the groups do not become fewer.
  local waitingTime(works, span) = {
    record: 'plumbline:background_left:seconds',
    labels: { span: span },
    expr: |||
      plumbline:background_left:count
      / on (%(work)s)
      (-deriv(plumbline:background_left:count{work=~"%(works)s"}[%(span)s]) > 0)
    ||| % { work: promql.join(clusters + ['work']), works: std.join('|', std.objectFields(works)), span: span },
  },

  prometheusRules+:: {
    groups+: [{
      // Seldom, because the rule below reads a day of it. No page shows it: it outlives no lookback.
      name: 'plumbline-osd-home.rules',
      interval: config.paces.remembered,
      rules: [{
        record: 'plumbline:osd_home:info',
        expr: seen(uses),
      }],
    }, {
      name: 'plumbline-osd-host.rules',
      rules: [
        {
          // The node's name as Ceph writes it, from our own `instance`: all of its host part, or the part before the
          // first dot.
          record: 'plumbline:node_hostname:info',
          expr: |||
            group by (%(hostOf)s) (
              label_replace(%(up)s, "hostname", "$1", "instance", "([^:]+)(?::.*)?")
              or
              label_replace(%(up)s, "hostname", "$1", "instance", "([^.:]+)[.].*")
            )
          ||| % labels,
        },
        {
          // By the host itself; else by Ceph, where the name leads to one node alone; else by what the host said
          // before it fell silent; else by a socket, which may be left from before it moved. Two hosts that claim one OSD,
          // for minutes after it has moved: one of them.
          record: 'plumbline:osd_host:info',
          expr: |||
            topk by (%(osd)s) (1,
              %(now)s
              or on (%(osd)s)
              group by (%(osdOn)s) (
                group by (%(osdAt)s) (ceph_osd_metadata)
                * on (%(host)s) group_left (instance)
                (
                  plumbline:node_hostname:info
                  unless on (%(host)s)
                  (count by (%(host)s) (plumbline:node_hostname:info) > 1)
                )
              )
              or on (%(osd)s)
              %(before)s
              or on (%(osd)s)
              group by (%(osdOn)s) (plumbline_osd_socket_up or plumbline_osd_socket_ended)
            )
          ||| % (labels {
                   now: nested(seen(uses)),
                   before: 'group by (%s) (last_over_time(plumbline:osd_home:info[%s]))'
                           % [labels.osdOn, config.osdHosts.remember],
                 }),
        },
        {
          // Down where one producer says so: of two clusters without a label, neither hides the other's dead OSD.
          // Not with the figures of OSDs, which come every two minutes: pages and the changes below need it at once.
          // Also where its own host sees that it ended and the monitors say that some OSD is down: a manager that hangs
          // serves its last page for hours. Without Ceph's metrics the host's word is enough.
          record: 'plumbline:osd_up:bool',
          expr: |||
            (
              0 * group by (%(osd)s) (plumbline_osd_socket_ended == 1)
              unless on (%(osd)s)
              (plumbline_osd_socket_up == 1)
              unless on (%(cluster)s)
              (ceph_osd_up unless on (%(cluster)s) plumbline_ceph_health_check{name="OSD_DOWN"})
            )
            or on (%(osd)s)
            %(ceph)s
          ||| % (labels { ceph: std.rstripChars(osds.one(config, 'ceph_osd_up', 'min'), '\n') }),
        },
        {
          // Between down and up, at every scrape. Announced restarts don't count: after maintenance, a shorter window.
          record: 'plumbline:osd_up_changes:count',
          expr: std.join('or\n', [
            |||
              (
                %(changes)s
              )
              unless on (%(osd)s)
              last_over_time(plumbline:maintenance_osd:info[%(window)s])
            ||| % labels {
              window: window,
              changes: nested(osds.one(config, 'changes(ceph_osd_up[%s])' % window)),
            }
            for window in config.alerts.PlumblineCephOsdFlapping.windows
          ]),
        },
        {
          // Ceph's hostnames are not nodes': one node's daemon sees running OSDs with several of them, or they are named
          // as Rook names pods.
          record: 'plumbline:osd_hostname_wrong:info',
          expr: |||
            group by (%(cluster)s) (
              count by (%(instance)s) (
                group by (%(hostOf)s) (
                  group by (%(osdAt)s) (ceph_osd_metadata{hostname!=""})
                  * on (%(osd)s) group_left (instance)
                  (plumbline:osd_host:info and on (%(osd)s) plumbline:osd_up:bool == 1)
                )
              ) > 1
              or
              ceph_osd_metadata{hostname=~"%(pod)s"}
            )
          ||| % (labels { instance: promql.join(config.instanceLabels), pod: config.osdHosts.podName }),
        },
        {
          // Nodes whose daemon is silent while their storage answers: all OSDs last seen there are up, or there are none
          // and another node sees the cluster. Not where most of the cluster's nodes are silent. Not before Ceph had the time
          // to notice: OSDs of a host that is dead are up at first, and the page would start anew.
          record: 'plumbline:node_storage_up:info',
          expr: |||
            (
              group by (%(instance)s) (%(up)s == 0)
              and on (%(instance)s)
              (
                count by (%(instance)s) (plumbline:osd_host:info and on (%(osd)s) plumbline:osd_up:bool == 1)
                == on (%(instance)s)
                count by (%(instance)s) (plumbline:osd_host:info)
              )
              or
              (group by (%(instance)s) (%(up)s == 0) unless on (%(instance)s) plumbline:osd_host:info)
            )
            and on (%(instance)s)
            max by (%(instance)s) (max_over_time(%(up)s[%(noticed)s])) == 0
            and on (%(instance)s)
            max by (%(instance)s) (%(seen)s)
            and on (%(cluster)s)
            avg by (%(cluster)s) (%(up)s) >= %(minimumUp)g
          ||| % (labels {
                   noticed: config.alerts.PlumblineDown.noticed,
                   seen: promql.seen(config, labels.up, config.alerts.PlumblineDown.noticed, config.seen.slots.scraped),
                   instance: promql.join(config.instanceLabels),
                   minimumUp: config.alerts.PlumblineDown.minimumUp,
                 }),
        },
        {
          // 1 or 0: data moves. Where Prometheus has none of Ceph's own metrics, what a daemon with a key sees.
          record: 'plumbline:recovery:bool',
          expr: |||
            (
              max by (%(cluster)s) (
                %(moving)s
              )
              > bool 0
            )
            or on (%(cluster)s)
            (min by (%(cluster)s) (plumbline_ceph_gate_open{gate="recovery"}) == bool 0)
          ||| % (labels { moving: std.strReplace(moving, '\n', '\n    ') }),
        },
        {
          // Copies of objects that are missing or in the wrong place, by the manager that speaks.
          record: 'plumbline:recovery_left:copies',
          expr: |||
            max by (%(cluster)s) (ceph_num_objects_degraded)
            + on (%(cluster)s)
            max by (%(cluster)s) (ceph_num_objects_misplaced)
          ||| % labels,
        },
      ] + [
        {
          // Nothing while they do not become fewer.
          record: 'plumbline:recovery_left:seconds',
          labels: { bound: bound.name },
          expr: |||
            plumbline:recovery_left:copies * %(factor)s
            / on (%(cluster)s)
            %(pace)s by (%(cluster)s) (
              %(paces)s
            )
            and on (%(cluster)s)
            plumbline:recovery:bool == 1
          ||| % (labels + bound {
                   paces: nested(std.join('or\n', [pace(span) for span in config.recovery.spans])),
                 }),
        }
        for bound in [
          { name: 'lower', pace: 'max', factor: 1 },
          { name: 'upper', pace: 'min', factor: config.recovery.tail },
        ]
      ],
    }, {
      name: 'plumbline-background.rules',
      interval: config.paces.compared,
      rules: [
        // Without a daemon that asks the monitors only whether there are any: 1.
        waiting(work, |||
          max by (%(cluster)s) (plumbline_ceph_health_check{name="%(check)s"})
          or on (%(cluster)s)
          (max by (%(cluster)s) (ceph_health_detail{name="%(check)s"}) == 1)
        ||| % (labels { check: background.late[work] }))
        for work in std.objectFields(background.late)
      ] + [
        waiting(work, std.join('+ on (%(cluster)s)\n' % labels, [
          'sum by (%s) (max by (%s) (ceph_pg_%s))\n' % [labels.cluster, promql.join(clusters + ['pool_id']), state]
          for state in background.states[work]
        ]))
        for work in std.objectFields(background.states)
      ] + [
        waitingTime(background.late, background.span),
        waitingTime(background.states, background.trimmed),
      ],
    }],
  },
}

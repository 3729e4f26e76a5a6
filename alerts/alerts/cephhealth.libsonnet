// What Ceph knows of itself and somebody must hear: data at risk, operations refused, the quorum; the rest as tickets.
//
// Figures where there are figures (placement groups, monitors, OSDs), Ceph's own checks for what only it can judge (its
// limits, its file systems), one alert for all checks that remain. A check's series stays, with 0, once it was raised:
// so `== 1`, and no arithmetic. `max by`, because two managers around a failover tell everything twice.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local osd = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,
  local tunables = config.alerts,
  local clusters = promql.clusterLabels(config),
  local labels = {
    cluster: promql.join(clusters),
    daemon: promql.join(clusters + ['ceph_daemon']),
    check: promql.join(clusters + ['name']),
    pool: promql.join(clusters + ['pool_id']),
  },
  local inCluster = '{{ with $labels.cluster }} in cluster {{ . }}{{ end }}',
  local ofCluster = '{{ with $labels.cluster }} of cluster {{ . }}{{ end }}',
  local pool = '{{ if $labels.pool_id }}Pool {{ with $labels.pool }}{{ . }}{{ else }}{{ $labels.pool_id }}{{ end }}{{ else }}Ceph{{ end }}' + ofCluster,

  local anyOf(names) = std.join('|', names),
  // By the manager, or by the monitors where a daemon asks them: a manager that hangs serves its last page for hours.
  local raised(selectors) = |||
    max by (%(check)s) (%(checks)s)
  ||| % (labels {
           checks: std.join(' or ', [
             source % selector
             for selector in selectors
             for source in ['ceph_health_detail{%s} == 1', 'clamp_max(plumbline_ceph_health_check{%s}, 1)']
           ]),
         }),
  local oneOf(name) = raised(['name=~"%s"' % anyOf(tunables[name].names)]),

  local damaged(each) = alert.fromTunables(
    tunables.PlumblineCephDataDamaged + each,
    'PlumblineCephDataDamaged',
    // By the states of the groups; by the monitors' word where the manager has told of none.
    |||
      plumbline:pg_damaged:count{state=~"%(states)s"} > 0
      or on (%(cluster)s)
      (
        label_replace(
          max by (%(cluster)s) (plumbline_ceph_health_check{name="PG_DAMAGED"}),
          "state", "%(state)s", "", ""
        )
        %(which)s on (%(cluster)s)
        plumbline_ceph_health_check{name="OBJECT_UNFOUND"}
        unless on (%(cluster)s)
        (plumbline:pg_damaged:count > 0)
      )
    ||| % (labels {
             states: anyOf(each.pgStates),
             state: each.pgStates[0],
             which: if each.served then 'unless' else 'and',
           }),
    // What is served slows nothing, and may stand until the next scrub: it explains nothing above.
    { layer: 'rados', signal: if each.served then 'error' else 'loss' },
    'Copies of objects are wrong or missing.',
    '%s has {{ $value }} placement group%s in state {{ $labels.state }}: ' % [pool, promql.plural]
    + (if each.served then 'a copy of at least one object is damaged; clients get another one.'
       else 'at least one object has no good copy that can be found, and clients that ask for it hang or get an error.' + suspects.cause(config)),
  ),

  local monitors = 'max by (%(daemon)s) (ceph_mon_quorum_status)' % labels,

  // Of a monitor that the manager has never seen no host is known.
  local outOfQuorum = 'max by (ceph_daemon) (ceph_mon_quorum_status{%s}) == 0',
  local monitorsOut = suspects.daemons(
    config,
    'Out of it',
    '(' + outOfQuorum + ') + on (ceph_daemon) group_left (hostname) 0 * topk by (ceph_daemon) (1, ceph_mon_metadata{%s})'
    + ' or on (ceph_daemon) ' + outOfQuorum,
    'hostname'
  ),
  local osdsFull = suspects.daemons(
    config,
    'Full',
    '(max by (ceph_daemon) (plumbline_ceph_osd_used_bytes{%s}) / max by (ceph_daemon) (plumbline_ceph_osd_size_bytes{%s})'
    + ' >= scalar(max(plumbline_ceph_full_ratio{limit="full",%s})))'
    + ' * on (ceph_daemon) group_left (host) topk by (ceph_daemon) (1, plumbline_ceph_osd_crush_location_info{%s})',
    'host'
  ),

  // Where the daemon's host is not one of ours, Ceph's name for it; looked up when the alert is sent.
  local onHost =
    local matchers = promql.format(clusters + ['ceph_daemon']);
    local arguments = promql.arguments(clusters + ['ceph_daemon']);
    local known = ['%s{%s}' % [metric, matchers] for metric in ['plumbline:osd:info', 'ceph_mon_metadata']];
    local query = '(printf `%s` %s)' % [std.join(' or ', known), std.join(' ', [arguments for metric in known])];
    '{{ with $labels.instance }} on {{ . }}{{ else }}{{ with query ' + query
    + ' }} on {{ (first .).Labels.hostname }}{{ end }}{{ end }}',

  // Where our own daemon asks the OSD, it knows for how long and what for.
  local waiting(daemons) = |||
    max by (%(daemon)s) (ceph_daemon_health_metrics{type="SLOW_OPS",ceph_daemon%(daemons)s}) > 0
    unless on (%(daemon)s)
    plumbline_osd_blocked_operation_age_seconds
  ||| % (labels { daemons: daemons }),
  local slowOperations(layer, expr) = alert.new(
    config,
    'PlumblineCephSlowOperations',
    expr,
    { layer: layer, signal: 'latency' },
    'Operations wait in a Ceph daemon.',
    '{{ $labels.ceph_daemon }}%s%s has {{ $value }} operation%s older than osd_op_complaint_time. It may itself wait for another daemon.' % [ofCluster, onHost, promql.plural],
  ),

  local health(each) =
    local told = anyOf(tunables.PlumblineCephHealth.told);
    local broken = anyOf(tunables.PlumblineCephHealth.broken);
    local selectors =
      if each.kind == 'broken' then ['name!~"%s",severity="HEALTH_ERR"' % told, 'name=~"%s"' % broken]
      else ['name!~"%s|%s",severity!="HEALTH_ERR"' % [told, broken]];
    local layers = tunables.PlumblineCephHealth.layers;
    local withLayer(expr, layer, names) =
      'label_replace(\n  %s,\n  "layer", "%s", "name", "%s"\n)' % [promql.nested(expr), layer, anyOf(names)];
    alert.fromTunables(
      each,
      'PlumblineCephHealth',
      std.foldl(
        function(expr, layer) withLayer(expr, layer, layers[layer]),
        std.sort(std.objectFields(layers), function(layer) -std.find(layer, std.flattenArrays(config.blame.order))[0]),
        withLayer(raised(selectors), 'rados', ['.*'])
      ),
      { signal: 'health' },
      'Ceph reports a problem of its own.',
      'Ceph reports {{ $labels.name }}%s, and no other alert covers it.' % inCluster,
    ),

  _firstSteps+:: {
    PlumblineCephPgUnavailable: '`ceph health detail`, then `ceph pg PG query`: which OSDs do they wait for?',
    PlumblineCephDataDamaged: '`ceph health detail` names placement groups and OSDs; do not restart any of them yet',
    PlumblineCephMonitorDown: '`ceph quorum_status` names the monitor; do not restart another one',
    PlumblineCephFull: '`ceph health detail`, then `ceph df detail`: an OSD, a pool or a quota?',
    PlumblineCephNearlyFull: '`ceph osd df tree`: one OSD, or all?',
    PlumblineCephFilesystemDown: '`ceph fs status`: is a metadata server missing?',
    PlumblineCephOsdDown: '`ceph osd tree down`, then its log and the disk on its host',
    PlumblineCephOsdFlapping: '`ceph log last 200 info cluster`: network, or crashes?',
    PlumblineCephRecoveryStalled: '`ceph osd dump` for its flags, then `ceph osd df tree`',
    PlumblineCephScrubLate: '`ceph osd dump` for noscrub and nodeep-scrub, then `ceph config dump` for osd_scrub and osd_max_scrubs',
    PlumblineCephSlowOperations: '`ceph tell %s dump_historic_slow_ops`: which step is the longest?' % first.osd,
    PlumblineCephKeysInsecure: '`ceph health detail` names the keys',
    PlumblineCephHealth: '`ceph health detail`',
  },

  prometheusAlerts+:: {
    groups+: [
      {
        name: 'plumbline-ceph-data',
        rules: [
          alert.new(
            config,
            'PlumblineCephPgUnavailable',
            // The count alone is of whatever groups peer at this moment, which a split keeps above 0 for hours while each of
            // them takes a second. That one group stays inactive only Ceph can tell. The manager hangs where the groups of
            // its own pool are inactive; then the monitors' word counts, without the pools.
            |||
              plumbline:pg_unavailable:count > 0
              and on (%(cluster)s)
              max by (%(cluster)s) (ceph_health_detail{name="PG_AVAILABILITY"}) == 1
              or on (%(cluster)s)
              max by (%(cluster)s) (plumbline_ceph_health_check{name="PG_AVAILABILITY"})
            ||| % labels,
            { layer: 'rados', signal: 'error' },
            'Placement groups are unavailable.',
            '%s: {{ $value }} placement group%s not active, or not reported by any OSD. Clients that need data there hang.' % [pool, promql.plural] + suspects.cause(config),
          ),
        ] + std.map(damaged, tunables.PlumblineCephDataDamaged.severities) + [
          alert.new(
            config,
            'PlumblineCephMonitorDown',
            // While the manager hangs the monitors themselves say how many of them are out, not which.
            |||
              %(spare)s
              and on (%(cluster)s)
              (%(monitors)s == 0 unless on (%(daemon)s) plumbline:maintenance_monitor:info)
              or on (%(cluster)s)
              (
                %(spare)s
                - on (%(cluster)s)
                max by (%(cluster)s) (plumbline_ceph_health_check{name="MON_DOWN"})
                unless on (%(cluster)s)
                (%(monitors)s == 0)
                unless on (%(cluster)s)
                plumbline:maintenance_monitor:info
              )
            ||| % (labels {
                     monitors: monitors,
                     spare: '(sum by (%(cluster)s) (%(monitors)s) - (floor(count by (%(cluster)s) (%(monitors)s) / 2) + 1))' % (labels { monitors: monitors }),
                   }),
            { layer: 'rados', signal: 'health' },
            'A Ceph monitor is out of the quorum.',
            'Not all monitors%s are in the quorum.' % ofCluster + monitorsOut + ' {{ if gt $value 0.5 }}{{ $value }} more may fail; after that{{ else }}If one more fails,{{ end }} there is no majority and every client waits.'
            + suspects.causeOutside(config),
          ),
          alert.new(
            config,
            'PlumblineCephFull',
            oneOf('PlumblineCephFull'),
            { layer: 'rados', signal: 'error' },
            'Ceph is full and refuses writes.',
            // no suspects: what is full is named by the check
            'Ceph reports {{ $labels.name }}%s: it refuses writes to what is full, and clients hang or fail.' % inCluster
            + '{{ if eq $labels.name "OSD_FULL" }}' + osdsFull + '{{ end }}',
          ),
          alert.new(
            config,
            'PlumblineCephNearlyFull',
            oneOf('PlumblineCephNearlyFull'),
            { layer: 'rados', signal: 'capacity' },
            'Ceph is nearly full.',
            'Ceph reports {{ $labels.name }}%s: if it fills further, it first stops copying data between OSDs, then refuses writes.' % inCluster,
          ),
          alert.new(
            config,
            'PlumblineCephFilesystemDown',
            oneOf('PlumblineCephFilesystemDown'),
            { layer: 'filesystem', signal: 'error' },
            'A CephFS file system is unavailable, damaged or read-only.',
            'Ceph reports {{ $labels.name }}%s: clients of CephFS hang or fail.' % inCluster + suspects.cause(config),
          ),
        ],
      },
      {
        name: 'plumbline-ceph-health',
        rules: [
          alert.new(
            config,
            'PlumblineCephOsdDown',
            osd.onHost(config, 'plumbline:osd_up:bool == 0 unless on (%(osd)s) plumbline:maintenance_osd:info' % osd.labels(config)),
            { layer: 'osd', signal: 'health' },
            'An OSD is down.',
            '{{ $labels.ceph_daemon }}%s%s is down. Ceph copies its data to other OSDs; until that is done, the data has fewer copies.' % [ofCluster, onHost],
          ),
          alert.new(
            config,
            'PlumblineCephOsdFlapping',
            osd.onHost(config, 'plumbline:osd_up_changes:count >= %d' % tunables.PlumblineCephOsdFlapping.changes),
            { layer: 'osd', signal: 'error' },
            'An OSD repeatedly goes down and comes back.',
            '{{ $labels.ceph_daemon }}%s%s changed between down and up {{ $value }} times within %s: each time its placement groups peer again and clients wait.' % [ofCluster, onHost, tunables.PlumblineCephOsdFlapping.windows[0]],
          ),
          alert.new(
            config,
            'PlumblineCephRecoveryStalled',
            |||
              sum by (%(cluster)s) (max by (%(pool)s) (ceph_pg_degraded)) > 0
              unless on (%(cluster)s)
              (plumbline:recovery:bool == 1)
              unless on (%(cluster)s)
              plumbline:maintenance_explains:info
            ||| % labels,
            { layer: 'rados', signal: 'health' },
            'Copies are missing and nothing is being copied.',
            'Too few copies in {{ $value }} placement group%s%s, and nothing recovers or backfills: a flag, too few hosts or full OSDs may prevent it.' % [promql.plural, ofCluster],
          ),
          alert.new(
            config,
            'PlumblineCephScrubLate',
            |||
              plumbline:background_left:count{work=~"%(late)s"}
              unless on (%(work)s)
              (plumbline:background_left:seconds{span="%(span)s"} < %(longest)d)
            ||| % {
              late: anyOf(std.objectFields(config.background.late)),
              work: promql.join(clusters + ['work']),
              span: config.background.span,
              longest: promql.seconds(tunables.PlumblineCephScrubLate.longest),
            },
            { layer: 'rados', signal: 'health' },
            'Scrubs are late and do not catch up.',
            'Overdue for a {{ $labels.work }}%s: at least {{ $value }} placement group%s. ' % [inCluster, promql.plural]
            + '{{ with query (printf `plumbline:background_left:seconds{work=%q,' + promql.format(clusters) + '}` $labels.work ' + promql.arguments(clusters) + ') }}'
            + 'At the pace of the last ' + config.background.span + ' it takes {{ . | first | value | humanizeDuration }} to catch up'
            + '{{ else }}No progress was seen in ' + config.background.span + '{{ end }}. Damage that only a scrub finds stays unseen meanwhile.',
          ),
          slowOperations('osd', osd.onHost(config, waiting('=~"osd[.].+"'))),
          slowOperations('rados', waiting('!~"osd[.].+"')),
          alert.new(
            config,
            'PlumblineCephKeysInsecure',
            'count by (%(cluster)s) (\n  %(raised)s)\n' % { cluster: labels.cluster, raised: oneOf('PlumblineCephKeysInsecure') },
            { layer: 'rados', signal: 'health' },
            'Ceph still accepts insecure keys.',
            'Ceph reports {{ $value }} health check%s%s about keys of type aes, or about monitors that allow them. Probes still run. Rotate the keys.' % [promql.plural, inCluster],
          ),
        ] + [health(each) for each in tunables.PlumblineCephHealth.severities],
      },
    ],
  },
}

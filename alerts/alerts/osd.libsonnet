// OSDs that are slow, by what is to blame; hung and blocked ones; capacities that mClock has wrong.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local osds = import '../lib/osd.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local cluster = promql.clusterLabels(config),
  local labels = config.osd + osds.labels(config) {
    accused: promql.join(cluster + ['ceph_daemon', 'interface']),
  },
  local osd(signal) = { layer: 'osd', signal: signal },

  // With the OSD's node where it is known, so that what is wrong with the node speaks for it.
  local placed(expr) = |||
    (
      %(expr)s
    )
    * on (%(osd)s) group_left (instance)
    plumbline:osd_node:info
  ||| % (labels { expr: promql.nested(expr) }),

  local suspect(verdict) = 'plumbline:osd_suspect:info{verdict="%s"}' % verdict,

  // The worst of an OSD's figures, of those that are out of line.
  local figure(regex, only) = |||
    max by (%(osd)s) (
      plumbline:osd_compared:figure{figure=~"%(regex)s"}
      and on (%(figure)s)
      plumbline:osd_slow:info
    )
    and on (%(osd)s)
    %(only)s
  ||| % (labels { regex: regex, only: only }),

  // Everything of one OSD, of one cluster: a template's query.
  local clusterFormat = promql.format(cluster),
  local clusterArguments = promql.arguments(cluster),
  local ofOsd(metric, matchers='') =
    '(printf `%s{%sceph_daemon=%%q,%s}` $labels.ceph_daemon %s)' % [metric, matchers, clusterFormat, clusterArguments],
  local ofCluster(metric, matchers='') =
    '(printf `%s{%s%s}` %s)' % [metric, matchers, clusterFormat, clusterArguments],
  local name = '{{ $labels.ceph_daemon }}{{ with $labels.instance }} on {{ . }}{{ end }}',
  local each(query, label) =
    '{{ range $index, $each := query %s | sortByLabel "%s" }}{{ if $index }}, {{ end }}{{ .Labels.%s }}{{ end }}'
    % [query, label, label],
  local percent(query) = '{{ with query ' + query + ' }}{{ . | first | value | humanizePercentage }}{{ end }}',

  // Of the OSDs that are `network` by their connections.
  local slowest =
    ' The longest round trip is {{ with query (printf `max(plumbline:osd_connection_rtt:seconds{statistic="worst",%s} and on (ceph_daemon) plumbline:osd_slow_connection:info{%s})` %s %s) }}{{ . | first | value | humanizeDuration }}{{ end }}'
    % [clusterFormat, clusterFormat, clusterArguments, clusterArguments]
    + '; {{ with query (printf `sum(plumbline:osd_connection_retransmits:rate5m{%s} and on (ceph_daemon) plumbline:osd_slow_connection:info{%s})` %s %s) }}{{ . | first | value | printf "%%.1f" }}{{ end }} segments a second are retransmitted.'
      % [clusterFormat, clusterFormat, clusterArguments, clusterArguments],

  // Whether it is so now: Ceph's own check stays for a day.
  local slowNow = '{{ with query (printf `sum(plumbline:osd_store_slow:rate5m{ceph_daemon=%q,' + clusterFormat + '}) > 0` $labels.ceph_daemon ' + clusterArguments + ') }}'
                  + ' In the last five minutes Ceph counted {{ . | first | value | printf "%.2f" }} operations a second in this store that took more than ' + config.osd.storeSlowSeconds + ' s (BLUESTORE_SLOW_OP_ALERT).{{ end }}',

  local devices = '{{ with query ' + ofOsd('plumbline:osd_disk:info') + ' }} ('
                  + '{{ range $index, $each := . | sortByLabel "device" }}{{ if $index }}, {{ end }}{{ .Labels.device }}{{ end }}){{ end }}',
  // The interface Ceph uses for this network on the OSD's host; where Ceph does not say, what our daemon there finds.
  local nic = '{{ $nic := "" }}{{ $role := "cluster" }}{{ if eq $labels.interface "front" }}{{ $role = "public" }}{{ end }}'
              + '{{ range query ' + ofOsd('plumbline:osd:info') + ' }}{{ if eq $labels.interface "front" }}{{ $nic = .Labels.front_iface }}'
              + '{{ else }}{{ $nic = .Labels.back_iface }}{{ end }}{{ end }}'
              + '{{ if not $nic }}{{ range query (printf `plumbline_nic_role_info{role=~".+_%s",' + promql.instanceFormat(config) + '}` $role '
              + promql.instanceArguments(config) + ') }}{{ $nic = .Labels.device }}{{ end }}{{ end }}'
              + '{{ with $nic }} ({{ . }}){{ end }}',

  // What holds an OSD back, as its control group has it.
  local limits(metric, value, of) =
    '{{ range query ' + ofOsd(metric) + ' }}{{ $sign = true }}I/O limit set on {{ .Labels.cgroup }}: {{ .Value | ' + value + ' }} {{ .Labels.operation }} ' + of + ' on {{ .Labels.device }}. {{ end }}',
  local signs =
    '{{ $sign := false }}'
    + limits('plumbline_osd_cgroup_limit_iops', 'humanize', 'operations/s')
    + limits('plumbline_osd_cgroup_limit_bytes_per_second', 'humanize1024', 'bytes/s')
    + '{{ range query ' + ofOsd('plumbline:osd_cpu_throttled:ratio') + ' }}{{ if .Value }}{{ $sign = true }}CPU quota: throttled in {{ .Value | humanizePercentage }} of its periods. {{ end }}{{ end }}'
    + '{{ if not $sign }}No limit of its control group can be seen. {{ end }}'
    + 'Every write with a replica on this OSD waits for it.',

  local heartbeat = alerts.PlumblineOsdHeartbeatSlow,
  local capacity = alerts.PlumblineOsdCapacityMisjudged,

  // Of a device that holds nothing but the database.
  local databaseFull = alerts.PlumblineOsdDatabaseFull,
  local database(signal) = alert.new(
    config,
    'PlumblineOsdDatabaseFull',
    if signal == 'capacity' then |||
      plumbline:osd_database_used:ratio >= %(fullRatio)g
    ||| % databaseFull else |||
      max by (%(osdOn)s) (
        delta(plumbline_osd_database_spilled_bytes[%(spilledWindow)s])
        >= %(spilledShare)g * plumbline_osd_database_size_bytes
      )
    ||| % (labels + databaseFull),
    { layer: 'osd', signal: signal },
    "An OSD's database no longer fits on its device.",
    'The database of ' + name + (
      if signal == 'capacity' then ' uses {{ $value | humanizePercentage }} of its device. When that is full, the database spills over to the slower data device.'
      else ' has spilled {{ $value | humanize1024 }}B more to the data device within %s: lookups there are as slow as that device.' % databaseFull.spilledWindow
    ),
  ),

  _firstSteps+:: {
    PlumblineOsdSlowDisk: '`iostat -x 1 5` on its host, then ' + first.osdDisk + ': errors, firmware, link, load?',
    PlumblineOsdSlowPeer: '`ceph tell %s dump_historic_ops`: where does the time go?' % first.osd,
    PlumblineOsdLimited: '`systemctl show` of its unit on its host: which limit is set?',
    PlumblineRunQueueLong: first.check + ' names the CPUs; then `ps` there: what runs on them?',
    PlumblineOsdQueueing: '`ceph pg ls-by-primary %s`: a hot pool, or too few threads?' % first.osd,
    PlumblineOsdOutlier: '`ceph tell %s dump_historic_ops`: where does the time go?' % first.osd,
    PlumblineOsdHeartbeatSlow: '`plumbline check` on its host (on each host, if none is named), then losses and errors of its interfaces',
    PlumblineOsdConnectionSlow: '`plumbline check` on its host, then losses and errors of its interfaces and switch ports',
    PlumblineOsdSocketHung: '`ceph osd dump`: is it up? Then its process on {{ $labels.instance }}',
    PlumblineOsdOperationsBlocked: '`ceph tell %s dump_blocked_ops`' % first.osd,
    PlumblineOsdDatabaseFull: '`ceph tell %s compact` at a quiet hour; does it shrink?' % first.osd,
    PlumblineOsdCapacityMisjudged: '`ceph config dump` for osd_mclock_max_capacity_iops; who set it?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-osd',
      rules: [
        alert.new(
          config,
          'PlumblineOsdSlowDisk',
          placed(figure('commit|store_read', suspect('disk'))),
          osd('latency'),
          "An OSD's own disk is slow.",
          name + devices + ': an operation of its store takes {{ $value | humanizeDuration }}, much longer than on the other OSDs of its device class, and the block layer, its peers or probes confirm it. Every write with a replica on this OSD waits for it.' + slowNow,
        ),
        alert.new(
          config,
          'PlumblineOsdSlowPeer',
          placed(|||
            %(figure)s
            unless on (%(osd)s)
            %(explained)s
            and on (%(cluster)s)
            %(waiting)s
          ||| % (labels {
                   figure: promql.nested(figure('commit|subop', 'plumbline:osd_slow_peer:info')),
                   explained: 'plumbline:osd_suspect:info',
                   waiting: suspect('peer'),
                 })),
          osd('latency'),
          'OSDs wait for another OSD that is slow to write their replicas.',
          name + ' takes {{ $value | humanizeDuration }} for a replica, much longer than the other OSDs of its device class, and the writes of '
          + each(ofCluster('plumbline:osd_suspect:info', 'verdict="peer",'), 'ceph_daemon')
          + ' spend most of their time waiting for replicas. Nothing shows that its own device is slow.',
        ),
        alert.new(
          config,
          'PlumblineOsdLimited',
          // One that is starved completes too few operations for a figure: then its pings.
          placed(figure('commit|store_read|subop|queue', suspect('limit')) + |||
            or on (%(osd)s)
            max by (%(osd)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
            and on (%(osd)s)
            %(limit)s
          ||| % (labels { limit: suspect('limit') })),
          osd('latency'),
          'An OSD is slow although its disk is not.',
          name + ': an operation or a ping takes {{ $value | humanizeDuration }}, much longer than on the other OSDs of its device class, and its own disk' + devices + ' is not the cause. ' + signs,
        ),
        alert.new(
          config,
          'PlumblineRunQueueLong',
          |||
            count by (%(instance)s) (
              rate(plumbline_cpu_run_queue_wait_seconds_total[%(window)s]) >= %(tasks)g
            )
            and on (%(instance)s)
            plumbline:osd_node:info
          ||| % (alerts.PlumblineRunQueueLong { instance: promql.join(config.instanceLabels) }),
          osd('saturation'),
          'Tasks wait for the same CPU of a host with OSDs.',
          'On {{ $labels.instance }}, {{ $value }} CPU' + promql.plural + ' had a task or more waiting in the run queue at every moment of %s, on average: what runs there delays operations, even where other CPUs are idle.' % alerts.PlumblineRunQueueLong.window,
        ),
        alert.new(
          config,
          'PlumblineOsdQueueing',
          placed(figure('queue', suspect('queue'))),
          osd('saturation'),
          "Operations wait too long in an OSD's queue.",
          name + ': an operation waits {{ $value | humanizeDuration }} in the queue before the OSD works on it, far longer than in the other OSDs of its device class. Its device is not the cause: the OSD gets more work than it can do.',
        ),
        alert.new(
          config,
          'PlumblineOsdOutlier',
          // Also what is the host's: no other alert tells of that.
          placed(|||
            max by (%(osd)s) (
              (plumbline:osd_class:ratio{figure=~"read|write"} or plumbline:osd_equals:ratio{figure=~"read|write"})
              and on (%(figure)s)
              plumbline:osd_slow:info
            )
            and on (%(osd)s)
            plumbline:osd_slow_agreed:info
            unless on (%(osd)s)
            plumbline:osd_suspect:info{verdict!="host"}
          ||| % labels),
          osd('latency'),
          'An OSD is slower than its class for an unknown reason.',
          name + ' takes {{ printf "%.1f" $value }} times as long for an operation as the OSDs of its device class under a similar load, and a second signal confirms it.'
          + ' Its writes spend '
          + percent(ofOsd('plumbline:osd_write_share:ratio', 'part="queue",')) + ' of their time in the queue, '
          + percent(ofOsd('plumbline:osd_write_share:ratio', 'part="store",')) + ' in its store and '
          + percent(ofOsd('plumbline:osd_write_share:ratio', 'part="peers",')) + ' on replicas and network.'
          + '\nSuspected: {{ with query ' + ofOsd('plumbline:osd_suspect:info', 'verdict="host",')
          + ' }}the host: most of its OSDs are slow{{ with query ' + ofOsd('plumbline:osd_host_cause:info')
          + ' }}. It differs from the other hosts with OSDs by: {{ range $index, $each := . | sortByLabel "cause" }}'
          + '{{ if $index }}, {{ end }}{{ reReplaceAll "_" " " .Labels.cause }}{{ end }} (`plumbline check` there shows the command that fixes it)'
          + '{{ end }}{{ else }}nothing yet: disk, host, network, limits and queue look normal{{ end }}.',
        ),
        alert.new(
          config,
          'PlumblineOsdHeartbeatSlow',
          // Who is accused; where nobody is, that all are slow.
          placed(|||
            max by (%(accused)s) (plumbline_osd_heartbeat_seconds{statistic="worst"})
            and on (%(osd)s)
            plumbline:osd_far:info
          ||| % labels) + |||
            or on (%(cluster)s)
            quantile by (%(network)s) (0.5, plumbline_osd_heartbeat_seconds{statistic="median"}) >= %(seconds)g
          ||| % (labels + heartbeat),
          { layer: 'network', signal: 'latency' },
          'Heartbeats between OSDs are slow.',
          '{{ with $labels.ceph_daemon }}Pings between {{ . }}{{ with $labels.instance }} on {{ . }}{{ end }} and its peers{{ else }}Pings of at least half of all OSDs{{ end }} over the {{ $labels.interface }} network' + nic + ' take {{ if $labels.ceph_daemon }}up to {{ $value | humanizeDuration }}{{ else }}{{ $value | humanizeDuration }} or more{{ end }}. Pings involve no disk: the cause is the network, or a host short of CPU time. Ceph itself warns at 1 s.',
        ),
        alert.new(
          config,
          'PlumblineOsdConnectionSlow',
          // An OSD that is far away by its pings has the alert above.
          placed(|||
            plumbline:osd_slow_connections:count
            unless on (%(osd)s)
            plumbline:osd_far:info
          ||| % labels),
          { layer: 'network', signal: 'latency' },
          'Writes wait for replicas over slow TCP connections.',
          '{{ if eq $labels.end "far" }}' + name + ' is at the other end of slow TCP connections, over which {{ printf "%.0f" $value }} other OSD' + promql.plural + ' must get replicas'
          + '{{ else }}' + name + ' waits for replicas over slow TCP connections{{ if eq $labels.end "all" }}; most of its connections are slow, whoever is at the other end{{ else }}; the OSD at the other end is not known{{ end }}{{ end }}.'
          + slowest + ' Slow disks and busy OSDs do not slow a TCP connection, because the kernel acknowledges: the cause is the network.',
        ),
        alert.new(
          config,
          'PlumblineOsdSocketHung',
          // One that Ceph knows to be down has PlumblineCephOsdDown.
          |||
            max by (%(osdOn)s) (plumbline_osd_socket_up) == 0
            unless on (%(osd)s)
            (plumbline:osd_up:bool == 0)
          ||| % labels,
          osd('health'),
          'An OSD hangs and does not answer on its admin socket.',
          '{{ $labels.ceph_daemon }} on {{ $labels.instance }} hangs: its process listens on the admin socket and does not answer. This node has no other information about it.',
        ),
        alert.new(
          config,
          'PlumblineOsdOperationsBlocked',
          // Who waits for a replica names another: told only where none blocks for a reason of its own.
          |||
            max by (%(osdOn)s) (plumbline_osd_blocked_operation_age_seconds) >= %(seconds)g
            and on (%(osdOn)s)
            (
              plumbline_osd_blocked_operations{stage!="peer"} > 0
              or on (%(cluster)s)
              plumbline_osd_blocked_operations{stage="peer"} > 0
            )
          ||| % (labels + alerts.PlumblineOsdOperationsBlocked),
          osd('error'),
          'Operations are blocked in an OSD.',
          '{{ $labels.ceph_daemon }} on {{ $labels.instance }}: its oldest blocked operation has waited for {{ $value | humanizeDuration }}. Its clients wait; the blocked operations wait for: '
          + each('(printf `plumbline_osd_blocked_operations{ceph_daemon=%q,' + promql.instanceFormat(config) + '} > 0` $labels.ceph_daemon '
                 + promql.instanceArguments(config) + ')', 'stage')
          + '.' + suspects.cause(config),
        ),
      ] + std.map(database, ['capacity', 'health']) + [
        alert.new(
          config,
          'PlumblineOsdCapacityMisjudged',
          // Either way: too little is as wrong as too much.
          placed(|||
            plumbline:osd_capacity:ratio >= %(ratio)g
            or
            plumbline:osd_capacity:ratio <= 1 / %(ratio)g
          ||| % capacity),
          osd('health'),
          "An OSD has a wrong capacity in mClock.",
          "The capacity that mClock assumes for " + name + ' is {{ printf "%.2g" $value }} times its measured capacity, or the usual capacity of its device class. Ceph measured it once, at the first start of the OSD. If it is too low, the OSD is throttled; if it is too high, recovery takes capacity that clients need.',
        ),
      ],
    }],
  },
}

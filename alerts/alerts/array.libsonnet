// What is built from disks: md arrays, ZFS pools, multipath maps.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local disk = { layer: 'disk', signal: 'error' },

  local array = alerts.PlumblineArrayDegraded,
  local zfs = alerts.PlumblineZfsPoolUnhealthy,

  // " (raid1), a rebuild stands at 43 %"
  local level = '{{ with query (printf `plumbline_md_info{device=%q,' + promql.instanceFormat(config) + '}` $labels.device '
                + promql.instanceArguments(config) + ') }}{{ with (first .).Labels.raid_level }} ({{ . }}){{ end }}{{ end }}',
  local rebuild = '{{ with query (printf `plumbline_md_sync_ratio{device=%q,' + promql.instanceFormat(config) + '}` $labels.device '
                  + promql.instanceArguments(config)
                  + ') }} Rebuild progress: {{ . | first | value | humanizePercentage }}{{ else }} No rebuild is in progress{{ end }}.',

  // "raidz1-0, sdc"
  local vdevs = '{{ with query (printf `plumbline_zfs_vdev_healthy{pool=%q,' + promql.instanceFormat(config) + '} == 0` $labels.pool '
                + promql.instanceArguments(config)
                + ') | sortByLabel "vdev" }}; unhealthy vdevs:{{ range $index, $vdev := . }}{{ if $index }},{{ end }} {{ $vdev.Labels.vdev }}{{ end }}{{ end }}',

  local unhealthy(tunables) = alert.fromTunables(
    { 'for': zfs['for'] } + tunables,
    'PlumblineZfsPoolUnhealthy',
    |||
      max by (%(pool)s, state) (plumbline_zfs_pool_info{state%(operator)s"%(down)s"} == 1)
      and on (%(pool)s)
      (
        plumbline_zfs_pool_healthy == 0
        or
        plumbline_zfs_vdev_healthy == 0
      )
    ||| % (labels { operator: if tunables.down then '=~' else '!~', down: zfs.down }),
    disk,
    if tunables.down then 'A ZFS pool is out of service.' else 'A ZFS pool is not healthy.',
    'Pool {{ $labels.pool }} on {{ $labels.instance }} is {{ $labels.state }}' + vdevs + '.'
    + (if tunables.down then ' Its data cannot be reached.' else ' Its redundancy, or that of its log, cache or spares, is reduced or lost.'),
  ),

  _firstSteps+:: {
    PlumblineArrayDegraded: first.on('cat /proc/mdstat') + ': which member, and does it rebuild?',
    PlumblineZfsPoolUnhealthy: first.on('zpool status -v'),
    PlumblineMultipathPathLost: first.on('multipath -ll {{ $labels.device }}') + ' (`nvme list-subsys`, if it is NVMe): which path?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-array',
      rules: [
        // Two states have no number of missing disks: what does not run, and a member beside the data (a journal, a spare).
        alert.new(
          config,
          'PlumblineArrayDegraded',
          |||
            max by (%(interface)s) (plumbline_md_degraded_disks) > 0
            or
            max by (%(interface)s, state) (plumbline_md_info{state=~"%(dead)s", raid_level!="%(container)s"}) > 0
            or
            (
              max by (%(interface)s, member, state) (plumbline_md_member_info{state=~"(.*,)?faulty(,.*)?"})
              unless on (%(interface)s)
              plumbline_md_degraded_disks > 0
            )
          ||| % (labels + array),
          disk,
          'A RAID array lacks disks or does not run.',
          '{{ if $labels.member }}Member {{ $labels.member }} of array {{ $labels.device }}' + level
          + ' on {{ $labels.instance }} is {{ $labels.state }}. No data disk is missing, but the array has lost a spare or its journal.'
          + '{{ else }}Array {{ $labels.device }}' + level + ' on {{ $labels.instance }}'
          + '{{ if $labels.state }} is {{ $labels.state }}: it cannot be read.'
          + '{{ else }} lacks {{ $value }} of its disks: the next failure may destroy the array.' + rebuild + '{{ end }}{{ end }}',
        ),
      ] + std.map(unhealthy, zfs.severities) + [
        alert.new(
          config,
          'PlumblineMultipathPathLost',
          |||
            max by (%(interface)s) (plumbline_multipath_usable_paths)
            and on (%(interface)s)
            (
              plumbline_multipath_lost_paths > 0
              or
              plumbline_multipath_usable_paths == 0
            )
          ||| % labels,
          disk,
          'A multipath device has lost a path.',
          'Multipath device {{ $labels.device }} on {{ $labels.instance }} has '
          + '{{ if $value }}{{ $value }} usable path%s left, and has lost others: it has less bandwidth and less redundancy.' % promql.plural
          + '{{ else }}no usable path: its I/O waits or fails.{{ end }}',
        ),
      ],
    }],
  },
}

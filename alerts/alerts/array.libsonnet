// What is built from disks: md arrays, ZFS pools, multipath maps.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local disk = { layer: 'disk', signal: 'error' },

  local array = alerts.PlumblineArrayDegraded,
  local zfs = alerts.PlumblineZfsPoolUnhealthy,
  local multipath = alerts.PlumblineMultipathPathLost,

  // " (raid1), a rebuild stands at 43 %"
  local level = '{{ with query (printf `plumbline_md_info{device=%q,' + promql.instanceFormat(config) + '}` $labels.device '
                + promql.instanceArguments(config) + ') }} ({{ (first .).Labels.raid_level }}){{ end }}',
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
      plumbline_zfs_pool_healthy == 0
    ||| % (labels { operator: if tunables.down then '=~' else '!~', down: zfs.down }),
    disk,
    if tunables.down then 'A ZFS pool is out of service.' else 'A ZFS pool is not healthy.',
    'Pool {{ $labels.pool }} on {{ $labels.instance }} is {{ $labels.state }}' + vdevs + '.'
    + (if tunables.down then ' Its data cannot be reached.' else ' Its redundancy is reduced or lost.'),
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-array',
      rules: [
        alert.new(
          config,
          'PlumblineArrayDegraded',
          'max by (%(interface)s) (plumbline_md_degraded_disks) > 0' % labels,
          disk,
          'A RAID array lacks disks.',
          'Array {{ $labels.device }}' + level + ' on {{ $labels.instance }} lacks {{ $value }} of its disks: the next failure may destroy the array.' + rebuild,
        ),
      ] + std.map(unhealthy, zfs.severities) + [
        alert.new(
          config,
          'PlumblineMultipathPathLost',
          |||
            max by (%(interface)s) (plumbline_multipath_usable_paths)
            < on (%(interface)s)
            max by (%(interface)s) (max_over_time(plumbline_multipath_paths[%(window)s]))
          ||| % (labels + multipath),
          disk,
          'A multipath device has lost a path.',
          'Multipath device {{ $labels.device }} on {{ $labels.instance }} has {{ $value }} usable path' + promql.plural + ', fewer than it had within the last %s: it has less bandwidth and less redundancy.' % multipath.window,
        ),
      ],
    }],
  },
}

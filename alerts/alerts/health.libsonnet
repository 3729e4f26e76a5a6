// What a disk says of its own health, and that it says anything.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local disk(signal) = { layer: 'disk', signal: signal },
  local name = 'Disk ' + promql.diskName(config),

  local unavailable = alerts.PlumblineDiskHealthUnavailable,
  local media = alerts.PlumblineDiskMediaErrors,
  local failing = alerts.PlumblineDiskFailing,
  local wear = alerts.PlumblineDiskWearOut,
  local spare = alerts.PlumblineDiskSpareLow,
  local hot = alerts.PlumblineDiskHot,

  local labelled(expr, label, text) =
    'label_replace(\n  %s,\n  "%s", "%s", "", ""\n)\n' % [expr, label, text],

  _firstSteps+:: {
    PlumblineDiskHealthUnavailable: first.on('dmesg -T') + ', then `timeout 90 smartctl -i` of the disk',
    PlumblineDiskMediaErrors: first.disk + ' names its OSD; plan its replacement',
    PlumblineDiskFailing: first.disk + ' names its OSD; drain it while it can still be read',
    PlumblineDiskPendingSectors: first.on('smartctl -A /dev/{{ $labels.device }}') + ': does the number grow?',
    PlumblineDiskWearOut: first.disk + '; order its replacement',
    PlumblineDiskSpareLow: first.disk + '; order its replacement',
    PlumblineDiskHot: first.on('ipmitool sdr type Fan') + '; one disk, one row or all?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-health',
      interval: config.paces.daily,
      rules: [
        alert.new(
          config,
          'PlumblineDiskHealthUnavailable',
          // A disk that never told its health (a virtual one) is no news; one that stopped is. A sleeping one is left alone.
          |||
            time() - max by (%(interface)s) (plumbline_disk_health_last_success_timestamp_seconds)
            and on (%(interface)s)
            (
              plumbline_disk_health_available == 0
              or
              plumbline_disk_health_in_flight_seconds > %(stuckSeconds)d
            )
            unless on (%(interface)s)
            plumbline_disk_asleep == 1
          ||| % (labels + unavailable),
          disk('health'),
          'A disk has stopped reporting its health.',
          name + ' last reported its health {{ $value | humanizeDuration }} ago. A disk that no longer answers its controller may be about to fail.',
        ),
        alert.new(
          config,
          'PlumblineDiskMediaErrors',
          std.join('or\n', [
            labelled(
              |||
                max by (%(interface)s) (
                  0 * %(identified)s
                  + on (%(identity)s) group_left ()
                  (
                    plumbline:disk_damage:count{kind="%(kind)s"}
                    - min_over_time(plumbline:disk_damage:count{kind="%(kind)s"}[%(window)s])
                  )
                ) > 0
              ||| % (labels + media {
                       kind: config.disk.damage[damage],
                       identified: promql.nested(promql.identified(config, damage)),
                     }),
              'kind', config.disk.damage[damage]
            )
            for damage in std.objectFields(config.disk.damage)
          ]),
          disk('error'),
          'A disk reports new media errors.',
          name + ' reported more {{ $labels.kind }} within %s: {{ printf "%%.0f" $value }}. Disks that begin to report errors rarely stop.' % media.window,
        ),
        alert.new(
          config,
          'PlumblineDiskFailing',
          labelled(
            'max by (%(interface)s) (plumbline_disk_smart_passed) == 0' % labels, 'warning', 'SMART failed'
          ) + 'or\n'
          + 'max by (%(interface)s, warning) (plumbline_disk_critical_warning{warning!~"%(notFailing)s"}) == 1\n' % (labels + failing),
          disk('error'),
          'A disk reports that it is failing.',
          name + ' reports: {{ $labels.warning }}. Replace it while it can still be read.',
        ),
        alert.new(
          config,
          'PlumblineDiskPendingSectors',
          |||
            max by (%(interface)s) (plumbline_disk_pending_sectors) > 0
            or
            max by (%(interface)s) (plumbline_disk_offline_uncorrectable_sectors) > 0
          ||| % labels,
          disk('error'),
          'A disk has sectors that it cannot read.',
          name + ' has {{ $value }} sector' + promql.plural + ' that it could not read and has not replaced yet. The data there is lost on this disk, and each attempt to read it takes seconds.',
        ),
        alert.new(
          config,
          'PlumblineDiskWearOut',
          'plumbline:disk_endurance_left:seconds < %d' % (wear.days * promql.seconds('1d')),
          disk('health'),
          'A disk will soon reach the end of its rated writes.',
          name + ' reaches the end of its rated writes {{ with query (printf "vector(time() + %f)" $value) }}about {{ . | first | value | humanizeTimestamp }}{{ end }}, judging by its whole life and the last weeks.',
        ),
        alert.new(
          config,
          'PlumblineDiskSpareLow',
          // Drives that do not count spare blocks report 0, and 0 as the threshold.
          |||
            max by (%(interface)s) (plumbline_disk_spare_ratio)
            <= %(thresholds)g *
            (max by (%(interface)s) (plumbline_disk_spare_threshold_ratio) > 0)
          ||| % (labels + spare),
          disk('health'),
          'A disk has few spare blocks left.',
          name + ' has {{ $value | humanizePercentage }} of its spare blocks left: the others have replaced failed blocks. At its threshold the disk reports itself as failing and may become read-only.',
        ),
        alert.new(
          config,
          'PlumblineDiskHot',
          |||
            max by (%(interface)s) (plumbline_disk_temperature_celsius)
            >= on (%(interface)s)
            (
              min by (%(interface)s) (plumbline_disk_temperature_limit_celsius) - %(marginCelsius)g
            )
            or
            (
              max by (%(interface)s) (plumbline_disk_temperature_celsius) >= %(otherwiseCelsius)g
              unless on (%(interface)s)
              plumbline_disk_temperature_limit_celsius
            )
          ||| % (labels + hot),
          disk('saturation'),
          'A disk is too hot.',
          name + ' is at {{ printf "%.0f" $value }} °C, at or near its stated limit. A hot disk throttles itself, which raises latency, and ages faster.',
        ),
      ],
    }],
  },
}

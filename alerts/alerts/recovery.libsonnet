// Alerts that are sent to nobody: Alertmanager holds others back while they fire.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local layers = import '../lib/layers.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local clusters = promql.clusterLabels(config),
  local labels = {
    cluster: promql.join(clusters),
    target: promql.join(clusters + ['target']),
    osd: promql.join(clusters + ['ceph_daemon']),
    probeAndTarget: promql.join(config.instanceLabels + ['probe', 'target']),
    instance: promql.join(config.instanceLabels),
  },

  local asked(format) = 'query (printf `' + format % ('plumbline:recovery_left:seconds{%s}' % promql.format(clusters)) + '` ' + promql.arguments(clusters) + ')',
  local bound(of) = '{{ with ' + asked(of + '(%s)') + ' }}{{ . | first | value | humanizeDuration }}{{ end }}',
  local left = '{{ with ' + asked('%s') + ' }} At its present pace it is done in ' + bound('min') + ' to ' + bound('max') + '.{{ end }}',

  _firstSteps+:: {
    PlumblineProbeTargetDown: 'nothing here; follow PlumblineCephOsdDown, or PlumblineDown of the host that `ceph osd find` names',
    PlumblineLatencyExplained: 'nothing here; follow what is suspected (' + first.query('plumbline:suspected:info') + ')',
    PlumblineLayerSettling: 'nothing here; follow the alert that pages for that layer',
    PlumblineRecoveryUnderWay: 'nothing, if the change was intended; otherwise `ceph osd tree down`',
  },

  prometheusAlerts+:: {
    groups+: [{
      // As fast as what it holds back, and right behind what it reads.
      name: 'plumbline-explained',
      interval: config.canary.interval,
      rules: [
        alert.new(
          config,
          'PlumblineLatencyExplained',
          'plumbline:latency_explained:info',
          { signal: 'health' },
          'Latency of a layer follows from something below; tickets about it are held back.',
          'Layer {{ $labels.layer }}{{ with $labels.cluster }} of cluster {{ . }}{{ end }}{{ with $labels.ceph_daemon }}, {{ . }}{{ end }}: something below has an alert of its own and is late by enough seconds to be the reason. Latency tickets of this layer follow from that and are held back.',
        ),
      ],
    }, {
      name: 'plumbline-inhibitors',
      rules: [
        alert.new(
          config,
          'PlumblineRecoveryUnderWay',
          // a window that is not full yet proves no standing state
          |||
            plumbline:recovery:bool == 1
            unless on (%(cluster)s)
            (
              min_over_time(plumbline:recovery:bool[%(longest)s]) == 1
              and on (%(cluster)s)
              plumbline:recovery:bool offset %(longest)s
              and on (%(cluster)s)
              %(seen)s
            )
          ||| % (labels {
                   longest: config.recovery.longest,
                   seen: promql.seen(config, 'plumbline:recovery:bool', config.recovery.longest, config.seen.slots.slow),
                 }),
          { layer: 'rados', signal: 'health' },
          'Ceph is moving data; alerts about latency are held back.',
          "Recovery or backfill is in progress{{ with $labels.cluster }} in cluster {{ . }}{{ end }}: it adds to the load of disks and network." + left + " Warnings and pages about latency are held back, except PlumblineCanaryLatencyExtreme; alerts about losses and errors are sent.",
        ),
        alert.new(
          config,
          'PlumblineLayerSettling',
          layers.paged(std.flattenArrays(config.blame.order[1:std.length(config.blame.order) - 1]), config.blame.clientLayers, clusters),
          { signal: 'health' },
          'A layer has a page, or had one recently; latency alerts of the layers above are held back.',
          'A page about layer {{ $labels.layer }}{{ with $labels.cluster }} in cluster {{ . }}{{ end }} is firing, or was until recently. The layers above recover later, so their latency alerts are held back meanwhile.',
        ),
        alert.new(
          config,
          'PlumblineProbeTargetDown',
          |||
            max by (%(probeAndTarget)s) (plumbline_probe_target_info{target=~"osd[.].+"})
            and on (%(target)s)
            label_replace(
              plumbline:osd_host:info
              and on (%(instance)s)
              (max by (%(instance)s) (up{%(selector)s}) == 0)
              unless on (%(osd)s)
              plumbline:osd_up:bool == 1
              or on (%(osd)s)
              plumbline:osd_up:bool == 0
              or on (%(osd)s)
              group by (%(osd)s) (plumbline_osd_socket_ended),
              "target", "$1", "ceph_daemon", "(.+)"
            )
            or on (%(probeAndTarget)s)
            max by (%(probeAndTarget)s) (plumbline_probe_target_info)
            and on (%(target)s)
            plumbline:maintenance_target:info
          ||| % (labels { selector: config.plumblineSelector }),
          { layer: 'osd', signal: 'health' },
          'A probe measures an OSD that is down, or whose host does not answer.',
          'Probe {{ $labels.probe }} on {{ $labels.instance }} measures {{ $labels.target }}, which is down or whose host does not answer. Alerts of this probe follow from that and are held back; PlumblineCephOsdDown reports the OSD, PlumblineDown its host.',
        ),
      ],
    }],
  },
}

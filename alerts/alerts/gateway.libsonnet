// RGW, metadata servers, NVMe-oF gateways: slower than their equals or than they were, and requests that fail.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local ofCluster = '{{ with $labels.cluster }} of cluster {{ . }}{{ end }}',
  local title = '{{ if eq $labels.layer "object" }}RGW{{ else if eq $labels.layer "filesystem" }}metadata servers of CephFS{{ else }}NVMe-oF gateways{{ end }}',

  local slow = alerts.PlumblineGatewayLatencyHigh,
  local errors = alerts.PlumblineGatewayErrors,

  _firstSteps+:: {
    PlumblineGatewayLatencyHigh: '`ceph -s`, then `ceph osd perf`; if RADOS is quiet, CPU and network of the gateways (`ceph orch ps`)',
    PlumblineGatewayErrors: '`ceph orch ps --daemon-type rgw`, then the log of these gateways: which status codes, which users and buckets?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-gateway',
      rules: [
        alert.new(
          config,
          'PlumblineGatewayLatencyHigh',
          |||
            plumbline:gateway_latency_past:ratio >= %(pastRatio)g
            and on (%(past)s)
            plumbline:gateway_hour:figure{figure="latency"} >= %(floorSeconds)g
            or
            plumbline:gateway_latency_peers:ratio >= %(peersRatio)g
            and on (%(gateway)s)
            plumbline:gateway_latency:mean5m >= %(floorSeconds)g
          ||| % (slow {
                   past: promql.join(promql.clusterLabels(config) + ['layer', 'operation']),
                   gateway: promql.join(promql.clusterLabels(config) + ['layer', 'gateway', 'operation']),
                 }),
          { signal: 'latency' },
          'Gateways between clients and RADOS take much longer than they should.',
          '{{ if $labels.gateway }}{{ $labels.gateway }}' + ofCluster + ' takes {{ printf "%.1f" $value }} times as long for {{ $labels.operation }} as the median gateway of its kind in the cluster.'
          + '{{ else }}In the last hour, operation {{ $labels.operation }} of ' + title + ofCluster + ' took {{ printf "%.1f" $value }} times as long as usual at this hour (median of the past days).{{ end }}',
        ),
        alert.new(
          config,
          'PlumblineGatewayErrors',
          // Where nothing is known of a day ago, nothing is usual.
          |||
            max by (%(key)s) (
              plumbline:gateway_hour:figure{figure="failed"}
              and
              (
                plumbline:gateway_hour:figure{figure="failed"}
                >= %(ratio)g * max_over_time(plumbline:gateway_hour:figure{figure="failed"}[%(span)s] offset %(before)s)
              )
              and
              (
                plumbline:gateway_hour:figure{figure="failed"}
                >= %(share)g + max_over_time(plumbline:gateway_hour:figure{figure="failed"}[%(span)s] offset %(before)s)
              )
            )
          ||| % (errors { key: promql.join(promql.clusterLabels(config) + ['layer']) }),
          { signal: 'error' },
          'More requests to the object gateways fail than usual.',
          '{{ $value | humanizePercentage }} of the requests to RGW' + ofCluster + ' failed in the last hour, at least %g times as many as in the worst hour of the past week. RGW counts requests for what does not exist or is not allowed as failed, too.' % errors.ratio,
        ),
      ],
    }],
  },
}

// What the network's probes find that no counter of this node tells: a path that is smaller than its ends, lost packets.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),

  // A figure of one operation with whom it was measured to, and the port of this node that leads there.
  local towards(metric, which='') = |||
    max by (%(probe)s) (%(metric)s)
    * on (%(probe)s) group_left (target, device)
    max by (%(probe)s, target, device) (plumbline_probe_target_info%(which)s)
  ||| % (labels { metric: metric, which: which }),

  _firstSteps+:: {
    PlumblinePathMtuBelowInterface: first.on('ping -M do -s 8972 {{ $labels.target }}') + '; do all probes to that node say so?',
    PlumblineNetworkLoss: first.on('ping {{ $labels.target }}') + '; do all probes to that node lose packets?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-network-probe',
      rules: [
        alert.new(
          config,
          'PlumblinePathMtuBelowInterface',
          // What a node sends to itself goes by no cable.
          towards('plumbline_probe_path_mtu_bytes', '{device!="lo"}') + |||
            < on (%(interface)s) group_left ()
            max by (%(interface)s) (plumbline_nic_mtu_bytes)
          ||| % labels,
          { layer: 'network', signal: 'health' },
          'A network path carries smaller packets than its interface allows.',
          'Packets from {{ $labels.instance }} over {{ $labels.device }} to {{ $labels.target }} get through only up to {{ printf "%.0f" $value }} bytes, which is less than the MTU of {{ $labels.device }}: a switch or router on the way, or the peer, has a smaller MTU.',
        ),
        alert.new(
          config,
          'PlumblineNetworkLoss',
          // The latest run, and the median of the last three.
          towards('plumbline_probe_loss_ratio') + |||
            > %(share)g
            and on (%(probe)s)
            plumbline_probe_median_of_three_loss_ratio > %(share)g
            unless on (%(target)s)
            plumbline:maintenance_target:info
          ||| % (labels + alerts.PlumblineNetworkLoss { target: promql.join(promql.clusterLabels(config) + ['target']) }),
          { layer: 'network', signal: 'loss' },
          'Packets between two nodes are lost.',
          '{{ $value | humanizePercentage }} of the packets from {{ $labels.instance }} to {{ $labels.target }} were not answered, and most of the last runs lost packets as well.',
        ),
      ],
    }],
  },
}

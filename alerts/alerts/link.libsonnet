// What a link should be and is not: its speed, its bond, its MTU, its InfiniBand port.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local network(signal) = { layer: 'network', signal: signal },

  local slow = alerts.PlumblineNicLinkSlow,
  local down = alerts.PlumblineNicLinkDown,
  local flapping = alerts.PlumblineNicLinkFlapping,

  // Software devices have no bus: containers' ends come and go all day.
  local ofHardware = 'and on (%(interface)s)\nplumbline_nic_info{bus!=""}\n' % labels,
  local ibDown = alerts.PlumblineInfinibandPortDown,
  local ibErrors = alerts.PlumblineInfinibandErrors,

  // The role's labels without the role: what tells one Ceph cluster from another.
  local clusterLabels = promql.clusterLabels(config) + ['role'],
  local roleFormat = promql.format(clusterLabels),
  local roleArguments = promql.arguments(clusterLabels),

  // "1500 (2: stor03.example:10047 eth2, ...), 9000 (14)": hosts by name only where they are few.
  local mtus =
    '{{ range $index, $mtu := query (printf `count_values ("mtu", plumbline:nic_role_mtu:bytes{' + roleFormat + '})` '
    + roleArguments + ') | sortByLabel "mtu" }}'
    + '{{ if $index }}, {{ end }}{{ .Labels.mtu }} ({{ .Value }}'
    + '{{ if le .Value %s }}: ' % ('%.1f' % alerts.PlumblineNicMtuMismatch.namedInterfaces)
    + '{{ range $each, $interface := query (printf `plumbline:nic_role_mtu:bytes{' + roleFormat + '} == %s` '
    + roleArguments + ' .Labels.mtu) | sortByLabel "instance" }}'
    + '{{ if $each }}, {{ end }}{{ .Labels.instance }} {{ .Labels.device }}{{ end }}{{ end }})'
    + '{{ end }}',

  _firstSteps+:: {
    PlumblineNicLinkSlow: first.on('ethtool {{ $labels.device }}') + ': who advertises less?',
    PlumblineNicLinkDown: first.on('ethtool {{ $labels.device }}') + ', then the cable and the switch port',
    PlumblineNicLinkFlapping: first.on('dmesg -T') + ': when, and does its switch port say the same?',
    PlumblineNicMtuMismatch: '`ip -d link show` on the nodes named; which MTU was planned?',
    PlumblineBondSlaveDown: first.on('cat /proc/net/bonding/{{ $labels.device }}') + ', then the cable and the switch port',
    PlumblineBondMisaggregated: first.on('cat /proc/net/bonding/{{ $labels.device }}') + ', then LACP on the switch port',
    PlumblineInfinibandPortDown: first.on('ibstat {{ $labels.device }}'),
    PlumblineInfinibandErrors: first.on('ibqueryerrors') + ', then the cable',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-link',
      rules: [
        alert.new(
          config,
          'PlumblineNicLinkSlow',
          |||
            max by (%(interface)s) (plumbline_nic_speed_bytes_per_second)
            < %(belowShare)g *
            max by (%(interface)s) (plumbline_nic_speed_max_bytes_per_second)
          ||| % (labels + slow) + promql.lowestOnly(config) + promql.storageOnly(config),
          network('health'),
          'A network link is slower than its port supports.',
          '{{ $labels.device }} on {{ $labels.instance }} runs at ' + promql.bitsPerSecond + ', although the port supports more. The other end, the cable or the transceiver limits it.' + promql.switchPort(config),
        ),
        alert.new(
          config,
          'PlumblineNicLinkDown',
          // Of a bond's member PlumblineBondSlaveDown tells.
          |||
            max by (%(interface)s) (plumbline_nic_up) == 0
            and on (%(interface)s)
            max by (%(interface)s) (max_over_time(plumbline_nic_up[%(window)s])) == 1
            and on (%(interface)s)
            (
              plumbline_nic_info{bus!=""}
              and on (%(instance)s, bus)
              max_over_time(plumbline:nic_place_up:bool[%(window)s]) == 1
            )
            unless on (%(interface)s)
            label_replace(plumbline_bond_slave_up, "device", "$1", "slave", "(.+)")
          ||| % (labels + down) + ofHardware + promql.storageOnly(config),
          network('health'),
          'A network port has lost its link.',
          '{{ $labels.device }} on {{ $labels.instance }} has no link, but had one within the last %s. It is not part of a bond: what it carried is cut off or takes another route.' % down.window + promql.switchPort(config),
        ),
        alert.new(
          config,
          'PlumblineNicLinkFlapping',
          |||
            max by (%(interface)s) (increase(plumbline_nic_carrier_changes_total[%(window)s])) >= %(changes)d
          ||| % (labels + flapping) + ofHardware + promql.storageOnly(config),
          network('error'),
          'A network port repeatedly loses its link.',
          '{{ $labels.device }} on {{ $labels.instance }} lost or found its link {{ printf "%%.0f" $value }} times within %s: each time packets are lost, and a bond moves its connections.' % flapping.window + promql.switchPort(config),
        ),
        alert.new(
          config,
          'PlumblineBondSlaveDown',
          'max by (%(slave)s) (plumbline_bond_slave_up) == 0' % labels,
          network('health'),
          'A bond has lost a link.',
          'Slave {{ $labels.slave }} of {{ $labels.device }} on {{ $labels.instance }} has no link: the bond runs with less bandwidth and less redundancy, and the next failure may disconnect the node.' + promql.switchPort(config, '$labels.slave'),
        ),
        alert.new(
          config,
          'PlumblineBondMisaggregated',
          // A slave whose link is down is no matter of LACP.
          |||
            (
              max by (%(slave)s) (plumbline_bond_slave_aggregator_id)
              != on (%(interface)s) group_left ()
              max by (%(interface)s) (plumbline_bond_aggregator_id)
              or
              max by (%(slave)s) (plumbline_bond_slave_partner_mac_valid) == 0
            )
            and on (%(slave)s)
            max by (%(slave)s) (plumbline_bond_slave_up) == 1
          ||| % labels,
          network('health'),
          'A member of a bond has a link but is not aggregated.',
          'Slave {{ $labels.slave }} of {{ $labels.device }} on {{ $labels.instance }} has a link, but is outside the active LACP aggregator or has no LACP partner: it carries no traffic. Its switch port lacks LACP, is in another channel, or is on a switch that is not paired with the first.',
        ),
        alert.new(
          config,
          'PlumblineNicMtuMismatch',
          'count by (%(role)s) (count_values by (%(role)s) ("mtu", plumbline:nic_role_mtu:bytes)) > 1' % labels,
          network('health'),
          'Interfaces of one network have different MTUs.',
          'The interfaces with role {{ $labels.role }} have {{ $value }} different MTUs: ' + mtus + '. Packets larger than the MTU of the receiver are lost without an error at the sender; small packets such as heartbeats still pass.',
        ),
        alert.new(
          config,
          'PlumblineInfinibandPortDown',
          // A port nobody ever plugged a cable into is none that failed; one with a link and not active is.
          |||
            max by (%(port)s) (plumbline_infiniband_port_state) < %(activeState)d
            and on (%(port)s)
            (
              max by (%(port)s) (max_over_time(plumbline_infiniband_port_state[%(window)s])) >= %(activeState)d
              or on (%(port)s)
              max by (%(port)s) (plumbline_infiniband_physical_state) == %(linkUpState)d
            )
          ||| % (labels + ibDown),
          network('health'),
          'An InfiniBand or RoCE port is not active.',
          'Port {{ $labels.port }} of {{ $labels.device }} on {{ $labels.instance }} is in state {{ $value }} (1: down, 2: has a link and waits for a subnet manager) and carries no data.',
        ),
        alert.new(
          config,
          'PlumblineInfinibandErrors',
          |||
            sum by (%(port)s, error) (increase(plumbline_infiniband_errors_total{error!~"%(benign)s"}[%(window)s])) >= %(minimumErrors)d
          ||| % (labels + ibErrors),
          network('error'),
          'An InfiniBand port reports errors.',
          'Port {{ $labels.port }} of {{ $labels.device }} on {{ $labels.instance }}: {{ printf "%%.0f" $value }} more {{ $labels.error }} within %s. Symbol, receive and integrity errors point to a cable or transceiver, discards to congestion.' % ibErrors.window,
        ),
      ],
    }],
  },
}

// What interfaces lose; and what storage traffic means for them: which ones it leaves out, the MTU each network sees.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  // A role reaches down to the ports, but the packets of the network are as big as the uppermost interface allows:
  // a VLAN of 1500 on a bond of 9000 is a network of 1500.
  local mtu(role) = |||
    (
      max by (%(interface)s, role) (plumbline_nic_role_info{role="%(word)s"})
      * on (%(interface)s) group_left ()
      max by (%(interface)s) (plumbline_nic_mtu_bytes)
      unless on (%(interface)s)
      label_replace(
        plumbline_nic_relation_info and on (%(interface)s) plumbline_nic_role_info{role="%(word)s"},
        "device", "$1", "lower", "(.+)"
      )
    )
  ||| % (labels { word: role }),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-network.rules',
      rules: [
        {
          // Of the frames of a port, those that were lost or damaged; what nobody wanted (`filter`) is no loss. Both ways
          // together. Recorded, because to draw the worst ports of a fleet all of them have to be looked at.
          record: 'plumbline:nic_lost_frames:ratio',
          expr: |||
            sum by (%(interface)s) (
              %(drops)s
              or
              %(errors)s
            )
            /
            (sum by (%(interface)s) (rate(plumbline_nic_packets_total{device!="lo"}[%(lossWindow)s])) > 0)
          ||| % (labels {
                   local summed(metric, selector) =
                     'sum by (%s) (rate(%s{%s}[%s]))' % [labels.interface, metric, selector, config.nicLossWindow],
                   local once(expr, of) = 'label_replace(%s, "of", "%s", "", "")' % [expr, of],
                   lossWindow: config.nicLossWindow,
                   drops: once(summed('plumbline_nic_drops_total', 'device!="lo",cause=~"ring|fifo|other"'), 'drops'),
                   errors: once(summed('plumbline_nic_errors_total', 'device!="lo"'), 'errors'),
                 }) + promql.lowestOnly(config),
        },
        {
          // Whether a port has a link, by its place on the bus: names change at a reboot.
          record: 'plumbline:nic_place_up:bool',
          expr: |||
            max by (%(instance)s, bus) (
              plumbline_nic_up
              * on (%(interface)s) group_left (bus)
              topk by (%(interface)s) (1, group by (%(interface)s, bus) (plumbline_nic_info{bus!=""}))
            )
          ||| % labels,
        },
        {
          // 1: this interface carries none of Ceph's traffic, on a node where it is known which ones do.
          record: 'plumbline:nic_without_storage:info',
          expr: |||
            group by (%(interface)s) (plumbline_nic_mtu_bytes)
            unless on (%(interface)s)
            plumbline_nic_role_info
            and on (%(instance)s)
            plumbline_nic_role_info
          ||| % labels,
        },
        {
          record: 'plumbline:nic_role_mtu:bytes',
          expr: std.join('or\n', [mtu(role) for role in config.networkRoles]),
        },
      ],
    }, {
      // Apart, because the switch is asked by somebody else than the node: docs/scale.md.
      name: 'plumbline-switch.rules',
      rules: [
        {
          // The switch's side of a port, where lldpd names it and an SNMP exporter (if_mib; EtherLike-MIB for pauses) asks the
          // switch: its name is the switch's sysName, its port the interface's name or description there.
          record: 'plumbline:switch_port:per_second',
          expr: |||
            topk by (switch, switch_port) (
              1,
              group by (%(interface)s, switch, switch_port) (plumbline_nic_neighbor_info)
            )
            * on (switch, switch_port) group_right (%(interface)s)
            max by (switch, switch_port, what) (
              %(sides)s
            )
          ||| % (labels {
                   local named(label) = |||
                     label_replace(
                       label_replace(
                         (%(figures)s)
                         * on (instance) group_left (sysName)
                         group by (instance, sysName) (sysName),
                         "switch", "$1", "sysName", "(.+)"
                       ),
                       "switch_port", "$1", "%(label)s", "(.+)"
                     )
                   ||| % { label: label, figures: std.join(' or ', [
                     'label_replace(rate(%s[%s]), "what", "%s", "", "")' % [figure.metric, config.nicLossWindow, figure.what]
                     for figure in [
                       { metric: 'ifInDiscards', what: 'discards in' },
                       { metric: 'ifOutDiscards', what: 'discards out' },
                       { metric: 'ifInErrors', what: 'errors in' },
                       { metric: 'dot3InPauseFrames', what: 'pauses in' },
                       { metric: 'dot3OutPauseFrames', what: 'pauses out' },
                     ]
                   ]) },
                   sides: promql.nested(std.rstripChars(named('ifName'), '\n') + '\nor\n' + named('ifDescr')),
                 }),
        },
      ],
    }],
  },
}

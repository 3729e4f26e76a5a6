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
    }],
  },
}

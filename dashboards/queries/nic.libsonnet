// The queries of the page of one port: `$device` of `$instance`.
local matchers = import '../lib/matchers.libsonnet';
local proof = import '../lib/proof.libsonnet';

local node = matchers.selector('cluster=~"$cluster", instance="$instance"');
local sel(more='') = node(matchers.join(['device=~"$device"', more]));
local rate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, sel(more)];
local nodeRate(metric, more='') = 'rate(%s%s[$__rate_interval])' % [metric, node(more)];
local max(metric, by='', more='') = 'max by (%s) (%s%s)' % [by, metric, sel(more)];
// Alerts of the port, and those of the network of its whole node.
local ofPort = node('alertname=~"Plumbline.+", layer="network", device=~"$device|"');
local firing = node('alertname=~"Plumbline.+", layer="network", device=~"$device|", alertstate="firing", severity!="info"');
local packets = 'sum(%s)' % rate('plumbline_nic_packets_total');

{
  verdict: {
    up: max('plumbline_nic_up'),
    speed: '%s * 8' % max('plumbline_nic_speed_bytes_per_second'),
    speedShare: '%s / %s' % [max('plumbline_nic_speed_bytes_per_second'), max('plumbline_nic_speed_max_bytes_per_second')],
    mtu: max('plumbline_nic_mtu_bytes'),
    loss: 'sum(%s) / (%s > 0)' % [rate('plumbline_nic_drops_total', 'cause=~"ring|fifo"'), packets],
    errors: 'sum(%s) / (%s > 0)' % [rate('plumbline_nic_errors_total'), packets],
    findings: proof.counted('plumbline_finding%s == 1' % node('subject=~"$device", urgency!="info"'), of='plumbline_finding' + node()),
    alerts: proof.counted('ALERTS' + firing),
  },
  identity: {
    info: max('plumbline_nic_info', 'device, driver, firmware, bus, master, drop_source'),
    roles: 'group by (device, role) (plumbline_nic_role_info%s)' % sel(),
    neighbour: max('plumbline_nic_neighbor_info', 'switch, switch_port, switch_port_description'),
    switchSide: 'max by (switch, switch_port, what) (plumbline:switch_port:per_second%s)' % sel(),
    relations: 'group by (device, lower, relation) (plumbline_nic_relation_info%s) or group by (device, lower, relation) (plumbline_nic_relation_info%s)' % [sel(), node('lower=~"$device"')],
  },
  findings: 'max by (check, subject, urgency) (plumbline_finding%s == 1)' % node('subject=~"$device"'),
  alerts: 'max by (severity, alertname, layer, cluster, instance) (time() - (ALERTS_FOR_STATE%s and ignoring (alertstate) ALERTS%s))' % [ofPort, firing],
  loss: {
    drops: 'sum by (direction, cause) (%s)' % rate('plumbline_nic_drops_total'),
    errors: 'sum by (direction, cause) (%s)' % rate('plumbline_nic_errors_total'),
    pause: 'sum by (direction) (%s)' % rate('plumbline_nic_pause_frames_total'),
    priorityPause: 'sum by (direction) (%s)' % rate('plumbline_nic_priority_pause_frames_total'),
    carrier: 'sum(increase(plumbline_nic_carrier_changes_total%s[$__rate_interval]))' % sel(),
    bond: 'sum by (device) (increase(plumbline_bond_slave_link_failures_total%s[$__rate_interval]))' % node('slave=~"$device"'),
  },
  load: {
    throughput: 'sum by (direction) (%s) * 8' % rate('plumbline_nic_bytes_total'),
    speed: '%s * 8' % max('plumbline_nic_speed_bytes_per_second'),
    packets: 'sum by (direction) (%s)' % rate('plumbline_nic_packets_total'),
    size: 'sum by (direction) (%s) / (sum by (direction) (%s) > 0)' % [rate('plumbline_nic_bytes_total'), rate('plumbline_nic_packets_total')],
  },
  interrupts: {
    share: max('plumbline_nic_irq_share_max_ratio'),
    remote: max('plumbline_nic_irq_numa_remote_ratio'),
    cpus: max('plumbline_nic_irq_effective_cpus'),
    vectors: max('plumbline_nic_irq_active_vectors'),
  },
  settings: {
    ring: max('plumbline_nic_ring_entries', 'ring'),
    ringMax: max('plumbline_nic_ring_entries_max', 'ring'),
    channels: max('plumbline_nic_channels', 'channel'),
    maxChannels: max('plumbline_nic_channels_max', 'channel'),
    coalesceSeconds: max('plumbline_nic_coalesce_seconds', 'direction'),
    coalesceFrames: max('plumbline_nic_coalesce_frames', 'direction'),
    adaptive: max('plumbline_nic_coalesce_adaptive_enabled', 'direction'),
    pause: max('plumbline_nic_pause_enabled', 'direction'),
    offloads: max('plumbline_nic_offload_enabled', 'feature'),
  },
  host: {
    squeeze: 'sum by (cpu) (%s) > 0' % nodeRate('plumbline_softnet_time_squeezes_total'),
    backlog: 'sum by (cpu) (%s) > 0' % nodeRate('plumbline_softnet_packets_dropped_total'),
    processed: 'sum by (cpu) (%s)' % nodeRate('plumbline_softnet_packets_processed_total'),
  },
  bond: {
    up: 'max by (device, slave) (plumbline_bond_slave_up%(bond)s or plumbline_bond_slave_up%(member)s)' % self.of,
    active: 'max by (device, slave) (plumbline_bond_slave_active%(bond)s or plumbline_bond_slave_active%(member)s)' % self.of,
    partner: 'max by (device, slave) (plumbline_bond_slave_partner_mac_valid%(bond)s or plumbline_bond_slave_partner_mac_valid%(member)s)' % self.of,
    of:: { bond: sel(), member: node('slave=~"$device"') },
  },
}

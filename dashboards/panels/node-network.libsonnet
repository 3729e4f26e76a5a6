// The network of one node. What one port does in detail stands on its own page.
function(config)
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local q = import '../queries/node.libsonnet';

  local alerts = config.alerts;
  local toPort(column) = links.to('nic', { cluster: '${__data.fields.cluster:percentencode}', instance: '${__data.fields.instance:percentencode}', device: '${__data.fields.%s:percentencode}' % column });

  [
    [p.figures(
      'Ports',
      'Each port with its link, speed and MTU, and what it loses now: lost frames as a share of all (benign ones left out), damaged frames, pause frames, its receive ring as a share of the maximum. Bad looks like: loss of %g and more, or a port that should have a link and has none.' % alerts.PlumblineNicRingDrops.share,
      [['cluster', 'cluster', null], ['instance', 'instance', null], ['device', 'port', [toPort('device')]], ['driver', 'driver', null], ['master', 'bond', [toPort('master')]]],
      [
        { expr: q.network.info, name: null, unit: 'none' },
        { expr: q.network.up, name: 'link', unit: 'none' },
        { expr: q.network.speed, name: 'speed', unit: 'bps' },
        { expr: q.network.mtu, name: 'MTU', unit: 'none' },
        { expr: q.network.lost, name: 'lost', unit: 'percentunit', steps: [[null, p.colour.good], [alerts.PlumblineNicRingDrops.share, p.colour.bad]] },
        { expr: q.network.errors, name: 'damaged', unit: 'pps' },
        { expr: q.network.pause, name: 'pause frames', unit: 'pps' },
        { expr: q.network.ring, name: 'receive ring', unit: 'percentunit' },
      ],
      sort='lost', words='device'
    ) + p.hidden(['cluster', 'instance']) + p.words('link', { '0': 'down', '1': 'up' }), 24, 7],
    [p.timeSeries(
      'Frames lost, by cause',
      'Receive and transmit drops of all ports: "ring" is the host too slow to provide descriptors, "fifo" the NIC\'s own buffer or bus, "filter" is benign (unhandled protocol, inactive slave, wrong VLAN), "other" is what the driver does not explain. Bad looks like: ring or fifo above 0.',
      'pps', [p.target(q.network.drops, '{{cause}}')], overrides=[
        p.fixedColour('/^ring$/', p.colour.bad),
        p.fixedColour('/^fifo$/', p.colour.write),
        p.fixedColour('/^filter$/', p.colour.good),
        p.fixedColour('/^other$/', p.colour.warning),
      ]
    ), 6, 8],
    [p.timeSeries(
      'Squeeze and backlog overflow, per CPU',
      'How often the receive softirq left with work undone because its budget or time ran out (no loss by itself), packets dropped for a backlog beyond net.core.netdev_max_backlog, and how many tasks wait for the CPU. Bad looks like: any overflow, or a squeeze that grows with load on one CPU while others are idle.',
      'ops', [
        p.target(q.network.squeeze, 'squeeze, cpu {{cpu}}'),
        p.target(q.network.waiting, 'tasks waiting, cpu {{cpu}}'),
        p.target(q.network.backlogDrops, 'overflow, cpu {{cpu}}'),
      ]
    ), 6, 8],
    [p.timeSeries(
      'TCP segments sent again',
      'Share of the segments that this node retransmitted: loss on the path or at the other end, whether or not a local port counts it. Bad looks like: %g and more.' % alerts.PlumblineTcpRetransmits.share,
      'percentunit', [p.target(q.network.retransmitted, 'retransmitted')]
    ), 6, 8],
    [p.timeSeries(
      'Network throughput',
      'Bits per second through each interface; the context for the losses in the next panel. Bad looks like: a plateau at the link\'s speed.',
      'bps', [p.target(q.network.throughput, '{{device}} {{direction}}')]
    ) + p.linked([links.fromSeries('nic', ['cluster', 'instance', 'device'])]), 6, 8],
  ]

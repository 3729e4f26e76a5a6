// Network: does it lose or delay what storage sends, on which host and port, and why?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/network.libsonnet')(config);

  local alerts = config.alerts;
  local beyond(limit) = [[null, p.colour.good], [limit, p.colour.bad]];
  local below(limit) = [[null, p.colour.bad], [limit, p.colour.good]];
  local toPort = links.fromRow('nic', ['cluster', 'instance', 'device']);
  local toNode = links.fromRow('node', ['cluster', 'instance']);
  local portOfSeries = p.linked([links.fromSeries('nic', ['cluster', 'instance', 'device'])]);
  local nodeOfSeries = p.linked([links.fromSeries('node', ['cluster', 'instance'])]);
  local probesOfSeries = p.linked([links.to('probes', { layer: 'network', workload: '${__field.labels.workload:percentencode}' })]);
  local portLabels = [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['device', 'port', [toPort]]];

  local causeColours = [
    p.fixedColour('/^ring$/', p.colour.bad),
    p.fixedColour('/^fifo$/', p.colour.write),
    p.fixedColour('/^filter$/', p.colour.good),
    p.fixedColour('/^other$/', p.colour.warning),
  ];

  local verdict = [
    [p.stat(
      'Worst probe ratio',
      'Throughput and round trips against the baseline in force (recorded here, else the site file, else a chosen profile): 1 is as accepted, 2 is twice as bad. No baseline: no judgement. Bad looks like: above %g and staying there.' % config.minimumTolerance,
      'none', p.target(q.verdict.degradation, 'degradation', instant=true), thresholds.degradation, 'no baseline', decimals=2
    ), 4, 4],
    [p.stat(
      'Worst loss at a port',
      'Frames lost to a full ring or a full buffer of the card, as a share of all frames of the worst port. Bad looks like: %g or more, where loss itself limits a fast link and an alert fires.' % alerts.PlumblineNicRingDrops.share,
      'percentunit', p.target(q.verdict.loss, 'lost', instant=true), beyond(alerts.PlumblineNicRingDrops.share), 'no daemon is scraped'
    ), 4, 4],
    [p.stat(
      'Worst damage share',
      'Frames with a wrong checksum, length or framing, as a share of all frames of the worst port. Bad looks like: %g or more: a cable, a transceiver or a port at either end.' % alerts.PlumblineNicErrors.share,
      'percentunit', p.target(q.verdict.errors, 'damaged', instant=true), beyond(alerts.PlumblineNicErrors.share), 'no daemon is scraped'
    ), 4, 4],
    [p.stat(
      'TCP resent',
      'Segments that the worst node retransmits, as a share of all it sends: loss on the path or at the other end. Bad looks like: %g or more, at which one connection is held to about 1 Gb/s.' % alerts.PlumblineTcpRetransmits.share,
      'percentunit', p.target(q.verdict.retransmitted, 'retransmitted', instant=true), beyond(alerts.PlumblineTcpRetransmits.share), 'no daemon is scraped'
    ), 3, 4],
    [p.stat(
      'Slow links',
      'Ports whose link runs slower than the port can: the other end, the cable or the transceiver holds it back. Bad looks like: more than 0.',
      'none', p.target(q.verdict.slowLinks, 'links', instant=true), thresholds.few, 'no daemon is scraped', decimals=0
    ), 3, 4],
    [p.stat(
      'Mixed MTUs',
      'Ceph networks (by role) whose interfaces do not agree on an MTU. Large packets get lost there while small ones pass. Bad looks like: more than 0.',
      'none', p.target(q.verdict.mtus, 'networks', instant=true), thresholds.none, 'rules not loaded', decimals=0
    ), 3, 4],
    [p.stat(
      'Alerts',
      'Warnings and pages about the network that fire now. The red marks in the graphs say since when. Bad looks like: more than 0.',
      'none', p.target(q.verdict.alerts, 'firing', instant=true), thresholds.none, 'rules not loaded', decimals=0
    ), 3, 4],
    [p.figures(
      'Worst ports',
      'The %d ports that lose or damage the most frames now, by cause. "ring": the host was too slow; "fifo": the buffer of the card or its bus; "other": the driver does not say. The other columns explain it: pause frames, the speed of the link and the receive ring as shares of their maximum, the busiest CPU\'s share of the interrupts, the use of the link. Bad looks like: any loss on a port that carries storage, or a CPU with %g and more of the interrupts.' % [q.worst.count, alerts.PlumblineNicIrqsOnOneCpu.share],
      portLabels,
      [
        { expr: q.worst.share, name: 'lost', unit: 'percentunit', steps: beyond(alerts.PlumblineNicRingDrops.share) },
        { expr: q.worst.ring, name: 'ring', unit: 'pps' },
        { expr: q.worst.fifo, name: 'fifo', unit: 'pps' },
        { expr: q.worst.other, name: 'other', unit: 'pps' },
        { expr: q.worst.errors, name: 'damaged', unit: 'pps' },
        { expr: q.worst.pause, name: 'pause frames', unit: 'pps' },
        { expr: q.worst.speed, name: 'speed', unit: 'percentunit', steps: below(alerts.PlumblineNicLinkSlow.belowShare) },
        { expr: q.worst.ringSize, name: 'receive ring', unit: 'percentunit' },
        { expr: q.worst.irq, name: 'busiest CPU', unit: 'percentunit', steps: beyond(alerts.PlumblineNicIrqsOnOneCpu.share) },
        { expr: q.worst.use, name: 'in use', unit: 'percentunit' },
      ],
      sort='lost'
    ), 24, 10],
  ];

  local loss = [
    [p.timeSeries(
      'Frames lost, by cause',
      'All ports of all nodes. "ring" is a host too slow to provide descriptors, "fifo" the buffer of a card or its bus, "filter" is benign (unhandled protocol, inactive slave, wrong VLAN), "other" what drivers do not explain. Bad looks like: ring or fifo above 0.',
      'pps', [p.target(q.loss.byCause, '{{cause}}')], overrides=causeColours
    ), 8, 8],
    [p.timeSeries(
      'Frames damaged, by cause',
      'Frames received damaged or not sent, all ports. "crc" and "frame" are cables and transceivers, "length" a peer with a larger MTU. Bad looks like: above 0 for longer than it takes to replug a cable.',
      'pps', [p.target(q.loss.errors, '{{cause}}')]
    ), 8, 8],
    [p.timeSeries(
      'Loss by port',
      'Lost and damaged frames as a share of all frames over %s, the ten worst ports at each moment; empty while nothing is lost. Bad looks like: %g and more.' % [config.nicLossWindow, alerts.PlumblineNicRingDrops.share],
      'percentunit', [p.target(q.loss.byPort, '{{instance}} {{device}}')], logarithmic=true
    ) + portOfSeries, 8, 8],
    [p.timeSeries(
      'Pause frames by port',
      'The ten ports with the most 802.3x pause frames; empty while there are none. Transmit: this host was too slow; receive: its peer or the switch is. Bad looks like: %d a second and more, which stops a 10 Gb/s link for up to a third of the time.' % alerts.PlumblineNicPauseStorm.framesPerSecond,
      'pps', [p.target(q.loss.pause, '{{instance}} {{device}} {{direction}}')]
    ) + portOfSeries, 8, 8],
    [p.timeSeries(
      'Backlog overflow by node',
      'Packets that the kernel dropped because a CPU\'s backlog was full (net.core.netdev_max_backlog), the ten worst nodes; empty while there are none. Bad looks like: more than 0.',
      'pps', [p.target(q.loss.backlog, '{{instance}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Time squeeze by node',
      'Rounds of packet processing a second that ended with work left, of the busiest CPU, the ten worst nodes; empty while there are none. No loss by itself. Bad looks like: more than %d and growing with load; the ring overflows next.' % alerts.PlumblineSoftnetTimeSqueeze.squeezesPerSecond,
      'ops', [p.target(q.loss.squeeze, '{{instance}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'TCP segments sent again, by node',
      'Share of the segments that were retransmitted, the ten worst nodes. It shows loss that no local port counted: at a switch, or at the receiver. Bad looks like: %g and more.' % alerts.PlumblineTcpRetransmits.share,
      'percentunit', [p.target(q.loss.retransmitted, '{{instance}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Refused connections by node',
      'New TCP connections that met a full accept queue (net.core.somaxconn, ms_tcp_listen_backlog), the ten worst nodes; empty while there are none. Bad looks like: more than the restart of a daemon explains.',
      'ops', [p.target(q.loss.listen, '{{instance}}')]
    ) + nodeOfSeries, 8, 8],
    [p.timeSeries(
      'Use of the links',
      'The busier direction of a port as a share of the speed of its link, the ten busiest. The load that explains the losses in the next panel. Bad looks like: a plateau near 100 %.',
      'percentunit', [p.target(q.load.use, '{{instance}} {{device}}')]
    ) + portOfSeries, 8, 8],
  ];

  local probes = [
    [p.timeSeries(
      'Throughput between nodes against its baseline',
      'The slowest pair and the median pair of each kind of run, held until the next one. Dashed: the median of the nodes\' baselines in force. Dotted: documented profiles, another site\'s hardware. Bad looks like: the slowest far below the median (one cable or switch), or both below the dashed line.',
      'Bps', [
        p.target(q.probe.throughput.worst('min'), 'slowest {{workload}} {{operation}} {{device_class}}'),
        p.target(q.probe.throughput.median, 'median {{workload}} {{operation}} {{device_class}}'),
        p.target(q.probe.throughput.baseline, 'baseline {{workload}} {{operation}} {{device_class}} ({{source}})'),
        p.target(q.probe.throughput.documented, 'documented {{workload}} {{operation}} ({{profile}} {{device_class}})'),
      ]
    ) + probesOfSeries, 12, 9],
    [p.timeSeries(
      'Round trips between nodes against their baseline',
      'The slowest pair and the median pair of each kind of run, by the statistic chosen above. Dashed: the median of the nodes\' baselines in force. Dotted: documented profiles, another site\'s hardware. Bad looks like: the slowest leaving the median, or both leaving the dashed line.',
      's', [
        p.target(q.probe.roundTrip.worst('max'), 'slowest {{workload}} {{device_class}}'),
        p.target(q.probe.roundTrip.median, 'median {{workload}} {{device_class}}'),
        p.target(q.probe.roundTrip.baseline, 'baseline {{workload}} {{device_class}} ({{source}})'),
        p.target(q.probe.roundTrip.documented, 'documented {{workload}} {{statistic}} ({{profile}} {{device_class}})'),
      ], logarithmic=true
    ) + probesOfSeries, 12, 9],
    [p.figures(
      'Path MTU and losses, probe by probe',
      'The largest packet that reached the target unfragmented, and the MTU of the port that leads there; packets without an answer; segments retransmitted in the latest run of iperf3. Bad looks like: a path smaller than its port (a switch or the peer has a smaller MTU), or more than %g of the packets lost.' % alerts.PlumblineNetworkLoss.share,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['probe', 'probe', [links.fromRow('probes', ['cluster', 'probe'])]], ['target', 'target', null], ['device', 'port', [toPort]]],
      [
        { expr: q.probe.pathMtu, name: 'path MTU', unit: 'none' },
        { expr: q.probe.interfaceMtu, name: 'MTU of the port', unit: 'none' },
        { expr: q.probe.loss, name: 'lost', unit: 'percentunit', steps: [[null, p.colour.good], [std.max(1e-9, alerts.PlumblineNetworkLoss.share), p.colour.warning]] },
        { expr: q.probe.retransmits, name: 'retransmitted', unit: 'none' },
      ],
      sort='lost'
    ), 24, 8],
  ];

  local settings = [
    [p.figures(
      'Ports below what they can do',
      'Only ports with something to fix: a link slower than the port, a receive ring below %g of its maximum that overflows, interrupts on one CPU, half duplex. "plumbline check" on the node names the command. Empty is good. Bad looks like: any row.' % alerts.PlumblineNicRingSmall.belowShare,
      portLabels,
      [
        { expr: q.settings.speed, name: 'speed', unit: 'percentunit' },
        { expr: q.settings.ring, name: 'receive ring', unit: 'percentunit' },
        { expr: q.settings.irq, name: 'busiest CPU', unit: 'percentunit' },
        { expr: q.settings.halfDuplex, name: 'full duplex', unit: 'none' },
      ]
    ), 12, 8],
    [p.figures(
      'MTU of each network',
      'How many interfaces of each of Ceph\'s networks have which MTU; nodes whose roles are not known are left out. The page on tuning shows which nodes differ. Bad looks like: two rows for one network.',
      [['cluster', 'cluster', null], ['role', 'network', null], ['mtu', 'MTU', null]],
      [{ expr: q.settings.mtus, name: 'interfaces', unit: 'none', links: [links.fromRow('tuning', ['cluster'])] }]
    ), 12, 8],
    [p.figures(
      'Bond members that carry nothing',
      'Members of bonds without a link, outside the active LACP aggregate, or without an LACP partner. Empty is good. Bad looks like: any row: the bond has less bandwidth than was paid for, and the next failure may be the last.',
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['device', 'bond', [toPort]], ['slave', 'member', [links.to('nic', { cluster: '${__data.fields.cluster:percentencode}', instance: '${__data.fields.instance:percentencode}', device: '${__data.fields.slave:percentencode}' })]]],
      [
        { expr: q.bond.down, name: 'link', unit: 'none' },
        { expr: q.bond.elsewhere, name: 'outside the aggregate', unit: 'none' },
        { expr: q.bond.noPartner, name: 'without a partner', unit: 'none' },
      ]
    ) + p.words('link', { '0': 'down' }) + p.words('outside the aggregate', { '1': 'yes' }) + p.words('without a partner', { '1': 'yes' }), 24, 6],
    [p.figures(
      'InfiniBand and RoCE ports',
      'State (%(state)d is active), speed, use, errors a second, and how often a second the port had data and no credit to send it; empty where there are none. Bad looks like: a state below %(state)d on a port with a cable, errors that continue, or waits on one port alone.' % { state: alerts.PlumblineInfinibandPortDown.activeState },
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['device', 'adapter', null], ['port', 'port', null]],
      [
        { expr: q.infiniband.state, name: 'state', unit: 'none', steps: below(alerts.PlumblineInfinibandPortDown.activeState) },
        { expr: q.infiniband.rate, name: 'speed', unit: 'bps' },
        { expr: q.infiniband.use, name: 'in use', unit: 'percentunit' },
        { expr: q.infiniband.errors, name: 'errors', unit: 'ops', steps: [[null, p.colour.good], [1e-9, p.colour.warning]] },
        { expr: q.infiniband.waits, name: 'waits for credit', unit: 'ops' },
      ],
      sort='errors'
    ), 24, 6],
  ];

  dashboard.new(
    'network',
    [variables.datasource, variables.cluster, variables.statistic],
    [
      { title: null, panels: verdict },
      { title: 'Loss and what leads to it', panels: loss },
      { title: 'Between nodes', panels: probes },
      { title: 'Links and settings', panels: settings, closed: true },
    ],
    shown='layer="network"'
  )

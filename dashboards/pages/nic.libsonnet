// NIC: what does this one port lose, why, and how is it set?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/nic.libsonnet';

  local alerts = config.alerts;
  local beyond(limit) = [[null, p.colour.good], [limit, p.colour.bad]];
  local below(limit) = [[null, p.colour.bad], [limit, p.colour.good]];
  // Another port of the same node, by the column of a table that names it.
  local toPort(column) = links.to('nic', { instance: '${instance}', device: '${__data.fields.%s:percentencode}' % column });
  local toNode = p.linked([links.to('node', { instance: '${instance}' })]);
  local onOff = { '0': 'off', '1': 'on' };

  local verdict = [
    [p.stat(
      'Link',
      'Whether the port has a link and can carry packets. Bad looks like: down on a port that is cabled.',
      'none', p.target(q.verdict.up, 'link', instant=true), below(1), 'not there'
    ) + { fieldConfig+: { defaults+: { mappings+: [{ type: 'value', options: { '0': { text: 'down', index: 0 }, '1': { text: 'up', index: 1 } } }] } } }, 3, 4],
    [p.stat(
      'Speed',
      'Speed of the link, as share of what the port can do where that is known. No link: the port has none, or its driver does not know (virtual ports). Bad looks like: less than was paid for.',
      'bps', p.target(q.verdict.speed, 'speed', instant=true), thresholds.neutral, 'not known'
    ), 3, 4],
    [p.stat(
      'Of possible',
      'Speed of the link as a share of the fastest mode that the port supports. Bad looks like: below %g %%: the other end, the cable or the transceiver holds it back.' % (100 * alerts.PlumblineNicLinkSlow.belowShare),
      'percentunit', p.target(q.verdict.speedShare, 'of the possible', instant=true), below(alerts.PlumblineNicLinkSlow.belowShare), 'not known'
    ), 3, 4],
    [p.stat(
      'MTU',
      'The largest packet that the port carries. What a whole network agrees on is on the network page. Bad looks like: another value than its peers have.',
      'none', p.target(q.verdict.mtu, 'MTU', instant=true), thresholds.neutral, 'not there'
    ), 3, 4],
    [p.stat(
      'Loss',
      'Frames lost to a full ring or a full buffer of the card, as a share of all. Bad looks like: %g or more, where an alert fires.' % alerts.PlumblineNicRingDrops.share,
      'percentunit', p.target(q.verdict.loss, 'lost', instant=true), beyond(alerts.PlumblineNicRingDrops.share), 'not reported'
    ), 3, 4],
    [p.stat(
      'Damaged',
      'Frames received damaged or not sent, as a share of all. Bad looks like: %g or more: a cable, a transceiver, a port at either end.' % alerts.PlumblineNicErrors.share,
      'percentunit', p.target(q.verdict.errors, 'damaged', instant=true), beyond(alerts.PlumblineNicErrors.share), 'not reported'
    ), 3, 4],
    [p.stat(
      'Open findings',
      'Documented advice that this port does not follow, except at level info; the table below names it. Bad looks like: more than 0.',
      'none', p.target(q.verdict.findings, 'open', instant=true), thresholds.few, 'no daemon is scraped', decimals=0
    ) + toNode, 3, 4],
    [p.stat(
      'Firing alerts',
      'Alerts of this port, and those about the network of its whole node. Bad looks like: more than 0.',
      'none', p.target(q.verdict.alerts, 'firing', instant=true), thresholds.none, 'rules not loaded', decimals=0
    ) + toNode, 3, 4],
    [p.timeSeries(
      'Frames lost, by cause',
      '"ring": the host provided descriptors too slowly; "fifo": the buffer of the card or its bus; "filter" is benign (unhandled protocol, inactive slave, wrong VLAN); "other": the driver does not say. Bad looks like: ring or fifo above 0.',
      'pps', [p.target(q.loss.drops, '{{direction}} {{cause}}')], overrides=[
        p.fixedColour('/ ring$/', p.colour.bad),
        p.fixedColour('/ fifo$/', p.colour.write),
        p.fixedColour('/ filter$/', p.colour.good),
        p.fixedColour('/ other$/', p.colour.warning),
      ]
    ), 12, 9],
    [p.timeSeries(
      'Throughput against the speed of the link',
      'Bits a second each way. Dashed: the speed of the link, absent where the driver does not know it. Bad looks like: a plateau at the dashed line, or well below it while frames are lost.',
      'bps', [
        p.target(q.load.throughput, '{{direction}}'),
        p.target(q.load.speed, 'baseline: speed of the link'),
      ], overrides=[p.fixedColour('/^receive/', p.colour.read), p.fixedColour('/^transmit/', p.colour.write)]
    ), 12, 9],
  ];

  local told = [
    [p.figures(
      'Open findings of this port',
      'Documented advice that it does not follow. "plumbline check" on the node says what is, what it should be, and the command that fixes it. Empty is good. Bad looks like: anything critical, or a warning on a port that carries storage.',
      [['check', 'check', null], ['urgency', 'severity', null]],
      [{ expr: q.findings, name: 'open', unit: 'none' }]
    ), 12, 7],
    [p.figures(
      'Identity and roles',
      'Driver, firmware, bus address; the bond that the port belongs to; by whose counters drops are told apart. Ceph\'s networks that it carries. Bad looks like: another firmware than its peers have.',
      [['device', 'port', null], ['role', 'role', null], ['driver', 'driver', null], ['firmware', 'firmware', null], ['bus', 'bus', null], ['master', 'bond', null], ['drop_source', 'drops by', null]],
      [{ expr: q.identity.info, name: null, unit: 'none' }, { expr: q.identity.roles, name: null, unit: 'none' }]
    ), 12, 7],
    [p.alerts(
      'Alerts of this port',
      'What fires now for this port, and for the network of its whole node, with how long. Empty is good. Bad looks like: any page.',
      q.alerts, links=[links.fromRow('node', ['cluster', 'instance'])]
    ), 24, 6],
  ];

  local more = [
    [p.figures(
      'Switch port',
      'What the cable leads to, as lldpd heard it, and what the switch counts there, where an SNMP exporter asks it. Bad looks like: discards out (its queue was full), errors in (the cable), or pauses.',
      [['switch', 'switch', null], ['switch_port', 'port', null], ['switch_port_description', 'description', null], ['what', 'what', null]],
      [{ expr: q.identity.neighbour, name: null, unit: 'none' }, { expr: q.identity.switchSide, name: 'a second', unit: 'none' }]
    ), 24, 5],
    [p.timeSeries(
      'Frames damaged, by cause',
      '"crc" and "frame" are cables and transceivers, "length" a peer with a larger MTU, "carrier" a link that went away while sending. Bad looks like: above 0 for longer than it takes to replug a cable.',
      'pps', [p.target(q.loss.errors, '{{direction}} {{cause}}')]
    ), 8, 8],
    [p.timeSeries(
      'Pause frames',
      '802.3x pause frames. Transmit: this host could not keep up; receive: its peer or the switch could not. Loss without a drop. Virtual ports have none. Bad looks like: %d a second and more.' % alerts.PlumblineNicPauseStorm.framesPerSecond,
      'pps', [p.target(q.loss.pause, '{{direction}}'), p.target(q.loss.priorityPause, '{{direction}}, by priority')]
    ), 8, 8],
    [p.timeSeries(
      'Link changes',
      'How often the carrier came or went, and how often its bond, if it has one, found it without a link. A port that flaps loses what was under way, and a bond moves its flows each time. Bad looks like: anything outside maintenance.',
      'none', [p.target(q.loss.carrier, 'changes'), p.target(q.loss.bond, 'failures seen by {{device}}')]
    ), 8, 8],
    [p.timeSeries(
      'Packets',
      'Packets a second each way. Small packets cost the host as much as big ones. Bad looks like: a plateau while the throughput is far below the link.',
      'pps', [p.target(q.load.packets, '{{direction}}')], overrides=[p.fixedColour('/^receive/', p.colour.read), p.fixedColour('/^transmit/', p.colour.write)]
    ), 8, 8],
    [p.timeSeries(
      'Mean packet size',
      'Bytes per packet each way; received ones as the kernel sees them, after merging (GRO) by some drivers. Bad looks like: far below the MTU on a port that carries big writes.',
      'bytes', [p.target(q.load.size, '{{direction}}')], overrides=[p.fixedColour('/^receive/', p.colour.read), p.fixedColour('/^transmit/', p.colour.write)]
    ), 8, 8],
    [p.timeSeries(
      'Where its interrupts fall',
      'The busiest CPU\'s share of the port\'s interrupts in the last interval, and the share on CPUs of another NUMA node. Bad looks like: %g and more on one CPU while there are several vectors, or a large share on the far node.' % alerts.PlumblineNicIrqsOnOneCpu.share,
      'percentunit', [
        p.target(q.interrupts.share, 'busiest CPU'),
        p.target(q.interrupts.remote, 'other NUMA node'),
      ]
    ), 8, 8],
    [p.timeSeries(
      'Vectors and CPUs at work',
      'Interrupt vectors that fired in the last interval, and the number of CPUs they ran on (inverse Simpson index). Bad looks like: many vectors and about one CPU.',
      'none', [
        p.target(q.interrupts.vectors, 'vectors'),
        p.target(q.interrupts.cpus, 'effective CPUs'),
      ]
    ), 8, 8],
    [p.timeSeries(
      'Squeeze and backlog overflow of the node, per CPU',
      'Rounds that ended with work left, and packets dropped for a full backlog, of all ports of this node together; CPUs without are left out. Bad looks like: any overflow, or a squeeze that grows with load on the CPU above.',
      'ops', [
        p.target(q.host.squeeze, 'squeeze, cpu {{cpu}}'),
        p.target(q.host.backlog, 'overflow, cpu {{cpu}}'),
      ]
    ), 8, 8],
    [p.timeSeries(
      'Packets of the node, per CPU',
      'What each CPU handed to the protocols, of all ports of this node together. A packet counts again at each VLAN, bond or bridge. Bad looks like: one CPU with nearly all of it.',
      'pps', [p.target(q.host.processed, 'cpu {{cpu}}')]
    ), 8, 8],
  ];

  local settings = [
    [p.figures(
      'Rings',
      'Descriptors in each ring, and the most that the driver allows (ethtool -g). Bad looks like: a receive ring below its maximum on a port that loses frames to "ring".',
      [['ring', 'ring', null]],
      [
        { expr: q.settings.ring, name: 'descriptors', unit: 'none' },
        { expr: q.settings.ringMax, name: 'maximum', unit: 'none' },
      ]
    ), 6, 7],
    [p.figures(
      'Queues',
      'Channels (an interrupt and its queues) in use, and how many the port can have (ethtool -l). Bad looks like: one, on a fast port of a host with many CPUs.',
      [['channel', 'channel', null]],
      [
        { expr: q.settings.channels, name: 'in use', unit: 'none' },
        { expr: q.settings.maxChannels, name: 'maximum', unit: 'none' },
      ]
    ), 6, 7],
    [p.figures(
      'Coalescing and flow control',
      'How long, and for how many frames, the port waits before it interrupts; whether the driver adapts that; whether it honours (receive) and sends (transmit) pause frames. Bad looks like: neither a wait nor adaptive, or pause off where the switch has it on.',
      [['direction', 'direction', null]],
      [
        { expr: q.settings.coalesceSeconds, name: 'waits', unit: 's' },
        { expr: q.settings.coalesceFrames, name: 'frames', unit: 'none' },
        { expr: q.settings.adaptive, name: 'adaptive', unit: 'none' },
        { expr: q.settings.pause, name: 'pause', unit: 'none' },
      ]
    ) + p.words('adaptive', onOff) + p.words('pause', onOff), 12, 7],
    [p.figures(
      'Offloads',
      'What the port does instead of the CPU, as ethtool -k names it. Bad looks like: checksums, segmentation or receive merging off, or different from its peers.',
      [['feature', 'feature', null]],
      [{ expr: q.settings.offloads, name: 'state', unit: 'none', steps: [[null, p.colour.neutral], [1, p.colour.good]] }]
    ) + p.words('state', onOff), 8, 10],
    [p.figures(
      'Members of its bond',
      'Each member\'s link and LACP partner, and whether it may carry traffic; empty where the port is in no bond. Bad looks like: a member that is down, or without a partner.',
      [['device', 'bond', [toPort('device')]], ['slave', 'member', [toPort('slave')]]],
      [
        { expr: q.bond.up, name: 'link', unit: 'none', steps: below(1) },
        { expr: q.bond.active, name: 'active', unit: 'none' },
        { expr: q.bond.partner, name: 'LACP partner', unit: 'none' },
      ]
    ) + p.words('link', { '0': 'down', '1': 'up' }) + p.words('active', { '0': 'no', '1': 'yes' }) + p.words('LACP partner', { '0': 'none', '1': 'yes' }), 8, 10],
    [p.figures(
      'Stands on',
      'What is below this port, and what is built on it: VLAN, bond, bridge. A frame lost below may be counted above once more. Bad looks like: nothing in itself.',
      [['device', 'above', [toPort('device')]], ['lower', 'below', [toPort('lower')]], ['relation', 'kind', null]],
      [{ expr: q.identity.relations, name: null, unit: 'none' }]
    ), 8, 10],
  ];

  dashboard.new(
    'nic',
    [variables.datasource, variables.cluster, variables.instance, variables.nic],
    [
      { title: '$device', panels: verdict, of: 'device' },
      { title: 'What is said of $device', panels: told, of: 'device' },
      { title: 'Errors, load and interrupts of $device', panels: more, of: 'device', closed: true },
      { title: 'Settings of $device', panels: settings, of: 'device', closed: true },
    ],
    shown='instance="$instance", layer="network"'
  )

// OSDs: which one is slow, and is it its disk, its queue, its host or a peer?
function(config)
  local clients = import '../lib/clients.libsonnet';
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/osds.libsonnet')(config);

  local osd = config.osd;
  local toOsd = links.fromSeries('osd', ['cluster', 'ceph_daemon']);
  local colours(names) = [p.fixedColour('/^%s$/' % name, p.colour.stage[name]) for name in names];
  local ratioSteps = [[null, p.colour.good], [osd.agreeRatio, p.colour.warning], [osd.ratio, p.colour.bad]];
  local number(title, description, expr, steps) =
    p.stat(title, description, 'none', p.target(expr, title, instant=true), steps, 'no data from Ceph', decimals=0);

  local state = [
    [number('OSDs up', 'OSDs that the monitors consider up, of the class chosen above. Bad looks like: fewer than yesterday.', q.state.up, thresholds.neutral), 3, 4],
    [number('Down', 'OSDs that the monitors consider down. Their data is read and written with fewer copies until they are back or replaced. Bad looks like: more than 0.', q.state.down, thresholds.none), 3, 4],
    [number('Out or gone', 'OSDs that hold no data any more because somebody took them out, or the monitors did after they were down for a while; and those that Ceph reported within the last %s and no longer reports. Bad looks like: more than 0 that nobody intended.' % config.osdHosts.remember, q.state.out, thresholds.few), 3, 4],
    [number('Bad disk', 'OSDs whose store is slow against their class, and whose disk is slow too. Replace or move the disk: the table below links it. Bad looks like: more than 0.', q.state.disk, thresholds.none), 3, 4],
    [number('Bad host, net', 'OSDs of a host most of whose OSDs are slow, and OSDs whose peers measure long pings to them. Bad looks like: more than 0.', q.state.elsewhere, thresholds.none), 3, 4],
    [number('Long queue', 'OSDs where operations wait in the queue, though neither disk, host nor network is slow: too much to do, or too few threads. Bad looks like: more than 0.', q.state.queue, thresholds.none), 3, 4],
    [number('Wait for peer', 'OSDs that are slow only because a replica is: the slow OSD is one of the suspects on the left. Bad looks like: many of these with one suspect: one slow disk looks like that.', q.state.peer, thresholds.few), 3, 4],
    [number('Slow, unknown', 'OSDs far from their class without a verdict that explains it. Their page shows where the time goes. Bad looks like: more than 0.', q.state.outlier, thresholds.few), 3, 4],
    [p.figures(
      'Suspects, and the slowest writers',
      'Every OSD that is suspected or out of line, with the reason, and the five slowest writers for comparison. To class is its worst figure divided by the median of its device class: 1 is the same as the others; it needs %d busy OSDs of a class. Means over five minutes. Bad looks like: to class at %g and above together with a verdict.' % [osd.minimumOsds, osd.ratio],
      [
        ['ceph_daemon', 'OSD', [links.to('osd', { cluster: '${__data.fields.cluster}', ceph_daemon: '${__data.fields.OSD}' })]],
        ['verdict', 'verdict', null],
        ['device_class', 'class', null],
        ['hostname', 'host', null],
        ['instance', 'node', [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]],
        ['device', 'disk', [links.to('disk', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}', device: '${__data.fields.disk}' })]],
        ['cluster', 'cluster', null],
      ],
      [
        { expr: q.suspects.verdict, name: null, unit: 'none' },
        { expr: q.suspects.place, name: null, unit: 'none' },
        { expr: q.suspects.disk, name: null, unit: 'none' },
        { expr: q.suspects.ratio, name: 'to class', unit: 'none', steps: ratioSteps },
        { expr: q.suspects.write, name: 'write', unit: 's' },
        { expr: q.suspects.commit, name: 'own commit', unit: 's' },
        { expr: q.suspects.queue, name: 'queue', unit: 's' },
        { expr: q.suspects.peers, name: 'waits for replicas', unit: 's' },
        { expr: q.suspects.operations, name: 'operations', unit: 'ops' },
      ],
      sort='to class', empty='no data from Ceph'
    ), 24, 9],
    [p.figures(
      'What sets a host apart',
      'Of hosts with OSDs: what they have unlike the others of their cluster, a cause where most of their OSDs are slow. The figure is in its own unit: seconds to leave an idle state, a share of the time or of the OSDs, 1 for on. "plumbline check" on the node shows the command. Empty is good, and so is a row of a host whose OSDs are as fast as any. Bad looks like: a host that is a suspect above.',
      [['instance', 'node', [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]], ['cause', 'cause', null], ['cluster', 'cluster', null]],
      [{ expr: q.hostCauses, name: 'figure', unit: 'none' }]
    ), 24, 5],
    [clients.table('Who loads the OSDs', 'all OSDs', q.clients), 24, 6],
  ];

  local latency = [
    [p.timeSeries(
      'p99 of the ten slowest',
      'The slowest hundredth of the client operations of each OSD, from the message\'s arrival to the reply, replicas included. From the OSDs\' own histograms, whose buckets double: less than a factor of two apart may be the grid. Bad looks like: one line a decade above the others.',
      's', [p.target(q.percentiles.p99, '{{ceph_daemon}} {{operation}}')], logarithmic=true
    ) + p.linked([toOsd]) + p.points(500), 12, 9],
    [p.timeSeries(
      'Median of the ten slowest',
      'Half of an OSD\'s client operations take less. Bad looks like: one OSD away from the others: it is slow all the time, not only sometimes.',
      's', [p.target(q.percentiles.p50, '{{ceph_daemon}} {{operation}}')], logarithmic=true
    ) + p.linked([toOsd]) + p.points(500), 12, 9],
    [p.stacked(
      'Where the time of a write goes',
      'The mean write of an OSD of the chosen class, in its stages, one after the other: the queue, the preparation until it is handed to store and replicas, this OSD\'s own commit, and the wait for replicas beyond that. Each OSD counts once. Bad looks like: one part growing while the others stay.',
      's', [p.target(q.parts.write, '{{part}}'), p.target(q.parts.total('write'), 'whole write')],
      overrides=colours(['queue', 'prepare', 'store', 'peers']) + [{
        matcher: { id: 'byName', options: 'whole write' },
        properties: [
          { id: 'custom.stacking', value: { mode: 'none', group: 'A' } },
          { id: 'custom.fillOpacity', value: 0 },
          { id: 'color', value: { mode: 'fixed', fixedColor: p.colour.write } },
        ],
      }]
    ) + p.linked([links.to('budget')]), 12, 9],
    [p.stacked(
      'Where the time of a read goes',
      'The mean read of an OSD of the chosen class: the queue, the preparation, the store, and the rest until the reply. Bad looks like: store growing (disks or cold metadata), or queue growing (too much to do).',
      's', [p.target(q.parts.read, '{{part}}'), p.target(q.parts.total('read'), 'whole read')],
      overrides=colours(['queue', 'prepare', 'store', 'other']) + [{
        matcher: { id: 'byName', options: 'whole read' },
        properties: [
          { id: 'custom.stacking', value: { mode: 'none', group: 'A' } },
          { id: 'custom.fillOpacity', value: 0 },
          { id: 'color', value: { mode: 'fixed', fixedColor: p.colour.read } },
        ],
      }]
    ), 12, 9],
    [p.timeSeries(
      'Stages of the store',
      'BlueStore\'s own means over the chosen class, which overlap and are therefore not stacked: a commit holds the device\'s write, the key-value store\'s sync and more. Bad looks like: kv or device following commit upwards: that is the disk; commit alone is CPU or locks.',
      's', [p.target(q.parts.store, '{{part}}')], logarithmic=true, overrides=colours(['commit', 'device', 'kv'])
    ), 8, 8],
    [p.timeSeries(
      'Furthest from their class',
      'Figures of an OSD divided by the median of its class, the ten furthest. OSDs with %g times the load of the others are left out, but for their queue. Nothing is drawn where a class has fewer than %d busy OSDs. Bad looks like: %g and above, where verdicts and alerts begin.' % [osd.comparableLoad, osd.minimumOsds, osd.ratio],
      'none', [p.target(q.outliers, '{{ceph_daemon}} {{figure}}')], logarithmic=true
    ) + p.linked([toOsd]), 8, 8],
    [p.timeSeries(
      'Client operations',
      'Operations a second of all OSDs of the class: the load that explains the latencies. Bad looks like: latency up while this is not.',
      'ops', [p.target(q.operations, '{{operation}}')],
      overrides=[p.fixedColour('/^read$/', p.colour.read), p.fixedColour('/^write$/', p.colour.write)]
    ), 8, 8],
  ];

  local peers = [
    [p.timeSeries(
      'Pings to the worst peer',
      'Pings of each OSD to its slowest peer, averages of a minute, the ten worst; dashed the median of all pings of a network. No disk is in a ping. From %g s on an OSD may accuse its peer. Bad looks like: several OSDs rising together: their common peer is far away or lacks CPU time.' % osd.heartbeat.floorSeconds,
      's', [
        p.target(q.heartbeat.worst, '{{ceph_daemon}} {{interface}}'),
        p.target(q.heartbeat.median, 'baseline: median {{interface}}'),
      ], logarithmic=true
    ) + p.linked([toOsd]), 12, 8],
    [p.figures(
      'Who accuses whom',
      'OSDs with the longest pings, and the peer (by its number) that each reports as the worst. If more than %d %% of those that report one name the same peer, it is a suspect. Bad looks like: one number in most rows, or pings of %g s (yellow) and %g s (red).' % [osd.heartbeat.share * 100, osd.heartbeat.floorSeconds, config.alerts.PlumblineOsdHeartbeatSlow.seconds],
      [
        ['ceph_daemon', 'OSD', [links.to('osd', { cluster: '${__data.fields.cluster}', ceph_daemon: '${__data.fields.OSD}' })]],
        ['interface', 'network', null],
        ['cluster', 'cluster', null],
      ],
      [
        { expr: q.accusations.peer, name: 'worst peer', unit: 'none', links: [links.to('osd', { cluster: '${__data.fields.cluster}', ceph_daemon: 'osd.${__value.raw}' })] },
        { expr: q.accusations.worst, name: 'its ping', unit: 's', steps: [[null, p.colour.good], [osd.heartbeat.floorSeconds, p.colour.warning], [config.alerts.PlumblineOsdHeartbeatSlow.seconds, p.colour.bad]] },
        { expr: q.accusations.median, name: 'median peer', unit: 's' },
      ],
      sort='its ping'
    ), 12, 8],
    [p.timeSeries(
      'Accused by how many',
      'How many OSDs report this one as the worst of their peers, where its ping stands out from their others. Nothing is drawn where no OSD accuses another.',
      'none', [p.target(q.heartbeat.accused, '{{ceph_daemon}} {{interface}}')]
    ) + p.linked([toOsd]), 8, 7],
    [p.timeSeries(
      'Blocked and slow operations',
      'Operations that have been blocked for 30 s and more, and those of the last ten minutes that took over 10 s, by what they wait for. Bad looks like: anything above 0; waiting for sub-operations is a replica\'s fault.',
      'none', [p.target(q.blocked.stage, 'blocked: {{stage}}'), p.target(q.blocked.slow, 'slow: {{stage}}')]
    ), 8, 7],
    [p.stat(
      'Oldest blocked op', 'Age of the oldest operation that is blocked, of all OSDs that the daemons may ask. Bad looks like: more than 0; from %g s on an alert fires.' % config.alerts.PlumblineOsdOperationsBlocked.seconds,
      's', p.target(q.blocked.age, 'age', instant=true), [[null, p.colour.good], [1, p.colour.warning], [config.alerts.PlumblineOsdOperationsBlocked.seconds, p.colour.bad]], noValue='no OSD asked'
    ), 4, 7],
    [p.stat(
      'OSDs not answering', 'OSDs that listen on their admin socket and answer nothing in time. One that was stopped or crashed is not among them. Bad looks like: more than 0.',
      'none', p.target(q.blocked.sockets, 'hung', instant=true), thresholds.none, decimals=0, noValue='no OSD asked'
    ), 4, 7],
  ];

  local capability = [
    [p.timeSeries(
      'Bench of the OSDs, operations',
      'The latest osd-bench of each class, mean over its OSDs, held until the next. Dashed: the baseline in force. Dotted: documented profiles, other hardware. Bad looks like: below the dashed line in several runs.',
      'iops', [
        p.target(q.bench.iops, '{{device_class}} {{workload}}'),
        p.target(q.bench.baselineIops, 'baseline {{device_class}} {{workload}} ({{source}})'),
        p.target(q.bench.documentedIops, 'documented {{device_class}} {{workload}} ({{profile}})'),
      ], logarithmic=true
    ), 8, 8],
    [p.timeSeries(
      'Bench of the OSDs, throughput',
      'The same bench in bytes a second: large writes say what the disks carry. Dashed: the baseline in force; dotted: documented. Bad looks like: below the dashed line in several runs.',
      'Bps', [
        p.target(q.bench.throughput, '{{device_class}} {{workload}}'),
        p.target(q.bench.baselineThroughput, 'baseline {{device_class}} {{workload}} ({{source}})'),
        p.target(q.bench.documentedThroughput, 'documented {{device_class}} {{workload}} ({{profile}})'),
      ], logarithmic=true
    ), 8, 8],
    [p.figures(
      'What mClock assumes',
      'The 4 KiB operations a second that mClock assumes for each OSD, divided by what an osd-bench of it measured, else by the median of its class; the 20 highest. Every share that mClock assigns is wrong by this factor. Bad looks like: %g and more, or half; set osd_mclock_max_capacity_iops again.' % config.alerts.PlumblineOsdCapacityMisjudged.ratio,
      [
        ['ceph_daemon', 'OSD', [links.to('osd', { cluster: '${__data.fields.cluster}', ceph_daemon: '${__data.fields.OSD}' })]],
        ['device_class', 'class', null],
        ['cluster', 'cluster', null],
      ],
      [
        { expr: q.capacity.place, name: null, unit: 'none' },
        { expr: q.capacity.assumed, name: 'assumed', unit: 'iops' },
        {
          expr: q.capacity.ratio,
          name: 'to measured',
          unit: 'none',
          steps: [[null, p.colour.warning], [1 / config.alerts.PlumblineOsdCapacityMisjudged.ratio, p.colour.good], [config.alerts.PlumblineOsdCapacityMisjudged.ratio, p.colour.bad]],
        },
      ],
      sort='to measured'
    ), 8, 8],
    [p.alerts('Alerts of OSDs that fire', 'What fires in the layer osd, the longest on top. A page about a disk inhibits the alerts of its OSD, so the list can be empty while the disk pages. Bad looks like: any row.', q.firing, [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })]), 24, 6],
  ];

  dashboard.new(
    'osds',
    [variables.datasource, variables.cluster, variables.device_class, variables.operation],
    [
      { title: null, panels: state },
      { title: 'Latency, and where it comes from', panels: latency },
      { title: 'Peers, and what is stuck', panels: peers },
      { title: 'What the OSDs can do', panels: capability, closed: true },
    ],
    shown='layer="osd"',
    empty='not measured here, or no data from Ceph'
  )

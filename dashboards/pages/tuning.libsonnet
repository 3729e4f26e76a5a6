// Tuning compliance: which documented advice is not followed, where, and which peers differ?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local g = import '../g.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/tuning.libsonnet';

  local toNode = links.fromRow('node', ['cluster', 'instance']);
  local toDevice(page, column) = links.to(page, { cluster: '${__data.fields.cluster:percentencode}', instance: '${__data.fields.instance:percentencode}', device: '${__data.fields.%s:percentencode}' % column });
  // All of it is the aim; what falls short of it is for `plumbline check` to explain.
  local whole = [[null, p.colour.warning], [1, p.colour.good]];
  local sortedBy(column) = { options+: { sortBy: [{ displayName: column, desc: false }] } };

  local followed(severity, what, bad) = [p.stat(
    'Followed, %s' % severity,
    'Share of the documented advice of severity %s that is followed, of all that applies to these nodes: %s. Source: "plumbline check" of every node, each with its document. Bad looks like: %s.' % [severity, what, bad],
    'percentunit', p.target(q.verdict.followed(severity), 'followed', instant=true), whole, 'none applies', decimals=1
  ), 4, 4];

  local verdict = [
    followed('critical', 'what makes a host serve badly now', 'anything below 100 %'),
    followed('warning', 'what costs data, redundancy or speed that was paid for', 'below 100 % for longer than a fix takes'),
    followed('info', 'what is worth doing when convenient', 'a share that falls, as after an upgrade that reset something'),
    [p.stat(
      'Open, not info',
      'Pieces of advice that are not followed, every subject on every node by itself. Bad looks like: more than 0; the table below names them.',
      'none', p.target(q.verdict.open, 'open', instant=true), thresholds.few, 'no daemon is scraped', decimals=0
    ), 4, 4],
    [p.stat(
      'Nodes to fix',
      'Nodes with open advice that is more than information. Bad looks like: more than 0.',
      'none', p.target(q.verdict.nodes, 'nodes', instant=true), thresholds.few, 'no daemon is scraped', decimals=0
    ), 4, 4],
    [p.stat(
      'Nodes that differ',
      'Nodes with a kernel setting or a version other than most of their cluster; ports and disks are compared below. Bad looks like: more than 0 outside an upgrade: what one node was tuned for, the others lack, or the other way round.',
      'none', p.target(q.verdict.nodesApart, 'nodes', instant=true), thresholds.few, 'rules not loaded', decimals=0
    ), 4, 4],
    [p.figures(
      'Open findings',
      'Advice that is not followed, of the severities chosen above. "plumbline check" on the node says what is, what it should be, and the command that fixes it. The subject is a setting, a disk or a port; a click opens the page of the latter two. Empty is good. Bad looks like: critical ones, or one check on every node (a role or an image that lacks it).',
      [['urgency', 'severity', null], ['check', 'check', null], ['subject', 'subject', [toDevice('disk', 'subject'), toDevice('nic', 'subject')]], ['cluster', 'cluster', null], ['instance', 'node', [toNode]]],
      [{ expr: q.open, name: null, unit: 'none' }]
    ) + sortedBy('severity'), 24, 11],
  ];

  local compliance = [
    [p.figures(
      'Compliance, check by check',
      'How often each documented advice applies (every subject on every node), how often it is not followed, on how many nodes. Bad looks like: a low share on many nodes, which one change fixes everywhere.',
      [['check', 'check', null]],
      [
        { expr: q.checks.followed, name: 'followed', unit: 'percentunit', steps: whole },
        { expr: q.checks.open, name: 'open', unit: 'none' },
        { expr: q.checks.nodes, name: 'nodes', unit: 'none' },
        { expr: q.checks.applies, name: 'applies', unit: 'none' },
      ],
      sort='open'
    ), 14, 10],
    [p.bars(
      'Nodes with most open findings',
      'Open advice of the severities chosen above, the fifteen nodes with most of it. Bad looks like: one node with far more than its peers: it was set up differently.',
      'none', p.target(q.nodes, '{{instance}}', instant=true), thresholds.few
    ) + p.linked([links.fromSeries('node', ['cluster', 'instance'])]), 10, 10],
    [p.stacked(
      'Open findings over time',
      'All open advice of the severities chosen above. It falls when something is fixed and when a node is absent. Bad looks like: a step up, as after an upgrade or a new kind of host.',
      'none', [p.target(q.time.open, '{{urgency}}')], overrides=[
        p.fixedColour('/^critical$/', p.colour.bad),
        p.fixedColour('/^warning$/', p.colour.warning),
        p.fixedColour('/^info$/', p.colour.neutral),
      ]
    ), 8, 8],
    [p.timeSeries(
      'Opened and closed',
      'Findings opened and findings fixed, in each of up to a hundred steps. Hosts and devices that came or went are left out. Bad looks like: many opened at once (an upgrade, a reboot that lost settings), or one that opens and closes again and again.',
      'none', [p.target(q.time.opened, 'opened'), p.target(q.time.closed, 'closed')], overrides=[
        p.fixedColour('/^opened$/', p.colour.bad),
        p.fixedColour('/^closed$/', p.colour.good),
      ]
    ) + g.panel.timeSeries.fieldConfig.defaults.custom.withDrawStyle('bars') + g.panel.timeSeries.fieldConfig.defaults.custom.withFillOpacity(70)
    + p.points(100), 8, 8],
    [p.timeSeries(
      'Followed, by subsystem',
      'Share of the advice that is followed, by what it is about: network, disk, PCIe, health, arrays. Bad looks like: a line that falls.',
      'percentunit', [p.target(q.time.followed, '{{subsystem}}')], min=null
    ) + p.points(500), 8, 8],
  ];

  local how = 'Text values are compared with the value that more than half of the peers have. Numbers are compared with the median of the peers: the majority\'s value where there is one; in a tie it lies between the two values and all are listed.';
  local drift = [
    [p.figures(
      'Kernel settings that differ from the cluster\'s',
      'Settings of a node (sysctl) that differ from the other nodes of its cluster; those that the kernel works out from memory are left out. %s Empty is good. Bad looks like: a node with several rows, which missed a tuning or got one by hand.' % how,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['sysctl', 'setting', null], ['field', 'field', null], ['value', 'value', null], ['most', 'most or median', null]],
      [{ expr: q.drift.kernel, name: null, unit: 'none' }]
    ), 12, 9],
    [p.figures(
      'Ports that differ from their peers',
      'MTU, speed, driver, firmware, rings, channels and offloads of a port that differ from the ports of the same name on the other nodes of the cluster. %s Empty is good. Bad looks like: one node with another MTU, or an old firmware.' % how,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['device', 'port', [toDevice('nic', 'device')]], ['setting', 'setting', null], ['value', 'value', null], ['most', 'most or median', null]],
      [{ expr: q.drift.ports, name: null, unit: 'none' }]
    ), 12, 9],
    [p.figures(
      'Disks that differ from their model',
      'Firmware, queue settings and power state of a disk that differ from the other disks of its model in the cluster. %s Empty is good. Bad looks like: peers with different firmware, which differ in latency without anything being broken.' % how,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['device', 'disk', [toDevice('disk', 'device')]], ['model', 'model', null], ['setting', 'setting', null], ['value', 'value', null], ['most', 'most or median', null]],
      [{ expr: q.drift.disks, name: null, unit: 'none' }]
    ), 12, 9],
    [p.figures(
      'CPU and memory settings that differ from the cluster\'s',
      'Frequency governor and idle states of the CPUs, transparent huge pages: what a node has and most nodes of its cluster have not. %s Empty is good. Bad looks like: the node whose OSDs are slow.' % how,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['setting', 'setting', null], ['value', 'value', null], ['most', 'most or median', null]],
      [{ expr: q.drift.power, name: null, unit: 'none' }]
    ), 12, 9],
    [p.figures(
      'Versions in use',
      'On how many nodes which kernel, Plumbline and Ceph run; Ceph by the metadata of the OSDs on the node. Bad looks like: two versions of one thing outside an upgrade.',
      [['cluster', 'cluster', null], ['setting', 'what', null], ['value', 'version', null]],
      [{ expr: q.drift.versions, name: 'nodes', unit: 'none' }],
      sort='nodes'
    ), 12, 8],
    [p.figures(
      'Nodes with another version than most',
      'The nodes behind the smaller numbers in the table before this one. %s Empty is good. Bad looks like: any row outside an upgrade.' % how,
      [['cluster', 'cluster', null], ['instance', 'node', [toNode]], ['setting', 'what', null], ['value', 'version', null], ['most', 'most have', null]],
      [{ expr: q.drift.versionsApart, name: null, unit: 'none' }]
    ), 12, 8],
  ];

  dashboard.new(
    'tuning',
    [variables.datasource, variables.cluster, variables.severity],
    [
      { title: null, panels: verdict },
      { title: 'Compliance', panels: compliance },
      { title: 'Differences between peers', panels: drift, closed: true },
    ],
    from='now-7d',
    refresh='5m'
  )

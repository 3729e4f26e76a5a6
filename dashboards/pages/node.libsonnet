// Node: does it still perform as accepted, and what on it stands out? The first screen is the verdict, what is open and
// what fires; then everything of one host, layer by layer, each row and line a way to the page of the one thing.
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local disks = (import '../panels/node-disks.libsonnet')(config);
  local network = (import '../panels/node-network.libsonnet')(config);
  local osds = (import '../panels/node-osds.libsonnet')(config);
  local probes = (import '../panels/node-probes.libsonnet')(config);
  local q = import '../queries/node.libsonnet';

  // The row's cluster and node go along, and its subject under the variable name of the target page.
  local to(page, column) = links.to(page, { cluster: '${__data.fields.cluster:percentencode}', instance: '${__data.fields.instance:percentencode}', device: '${__data.fields.%s:percentencode}' % column });
  local hidden = p.hidden(['cluster', 'instance']);
  local here = [['cluster', 'cluster', null], ['instance', 'instance', null]];

  local verdict = [
    [p.stat(
      'Worst degradation',
      'Measured against the baseline in force, worst of all layers and statistics: 1 is as accepted, 2 is twice as bad. Source: this node\'s recorded baseline, else the site file, else a documented profile the site chose. No data: no baseline is in force here. Bad looks like: above %g and staying there.' % config.minimumTolerance,
      'none', p.target(q.verdict.degradation, 'degradation', instant=true), thresholds.degradation, 'no baseline', decimals=2
    ), 4, 4],
    [p.stat(
      'Layer to blame',
      'The lowest layer with a warning or a page about latency, loss, saturation or errors on this node: what to look at first, since it slows those above it. Bad looks like: any layer at all.',
      'none', p.target(q.verdict.blamed, '{{layer}}', instant=true), [[null, p.colour.good], [1, p.colour.bad]], 'rules not loaded', label='layer'
    ) + { options+: { graphMode: 'none' } }, 4, 4],
    [p.stat(
      'Firing alerts',
      'Plumbline\'s alerts firing for this node now; the red marks in the graphs below say since when. Bad looks like: more than 0.',
      'none', p.target(q.verdict.alerts, 'firing', instant=true), thresholds.none, 'rules not loaded', decimals=0
    ), 3, 4],
    [p.stat(
      'Open findings',
      'Documented advice on network, disks, PCIe links, health and arrays that this node does not follow, except at level info. "plumbline check" on the node, and its status page, say what is, what it should be and the command that fixes it. Bad looks like: more than 0.',
      'none', p.target(q.verdict.findings, 'open', instant=true), thresholds.few, 'no daemon is scraped', decimals=0
    ), 3, 4],
    [p.stat(
      'No baseline',
      'How many of this node\'s measurements have no baseline to judge them. They are drawn but never alert: record one with "plumbline baseline record". Bad looks like: more than 0 on a node in service.',
      'none', p.target(q.verdict.baselineMissing, 'without a baseline', instant=true), thresholds.few, 'no probes', decimals=0
    ), 3, 4],
    [p.stat(
      'Oldest probe success',
      'Age of the last success of the probe that succeeded longest ago. The canary succeeds every few seconds, fio every few hours. Bad looks like: older than %g of that probe\'s intervals (an alert says so).' % config.probe.staleIntervals,
      's', p.target(q.verdict.probeAge, 'age', instant=true), thresholds.neutral, 'no success yet', decimals=0
    ), 4, 4],
    [p.stat(
      'Collectors',
      'Collectors whose last reading failed: their series are missing from everything below. Bad looks like: more than 0; the daemon\'s log and status page say why.',
      'none', p.target(q.verdict.collectorsFailing, 'failing', instant=true), thresholds.none, 'no daemon is scraped', decimals=0
    ), 3, 4],
    [p.figures(
      'What is not as advised',
      'Documented advice that this node does not follow, level info included. The subject is a setting, a disk or a port; a click opens the page of the latter two. "plumbline check" has the command that fixes each. Empty is good. Bad looks like: anything critical.',
      here + [['urgency', 'severity', null], ['check', 'check', null], ['subject', 'subject', [to('disk', 'subject'), to('nic', 'subject')]]],
      [{ expr: q.findings, name: null, unit: 'none' }],
      words='urgency'
    ) + hidden + { options+: { sortBy: [{ displayName: 'severity', desc: false }] } }, 10, 10],
    [p.figures(
      'What fires',
      'Alerts of this node with what they are about; a click opens its page. The lowest layer is usually the cause; the layers above it follow. Empty is good. Bad looks like: any page (critical).',
      here + [
        ['severity', 'severity', null],
        ['alertname', 'alert', null],
        ['layer', 'layer', null],
        ['device', 'device', [to('disk', 'device'), to('nic', 'device')]],
        ['ceph_daemon', 'OSD', [links.fromRow('osd', ['cluster', 'ceph_daemon'])]],
        ['probe', 'probe', [links.fromRow('probes', ['cluster', 'probe'])]],
      ],
      [{ expr: q.alerts, name: 'firing for', unit: 's' }],
      sort='firing for', words='severity', wide={ alert: 250 }
    ) + hidden, 14, 10],
  ];

  dashboard.new(
    'node',
    [variables.datasource, variables.cluster, variables.instances, variables.statistic],
    [
      { title: '$instance', panels: verdict, of: 'instance' },
      { title: 'Probes of $instance against their baseline', panels: probes.latency, of: 'instance' },
      { title: 'OSDs of $instance', panels: osds, of: 'instance', closed: true },
      { title: 'Disks of $instance', panels: disks, of: 'instance', closed: true },
      { title: 'Network of $instance', panels: network, of: 'instance', closed: true },
      { title: 'The watcher of $instance itself', panels: probes.watcher, of: 'instance', closed: true },
    ],
    shown='instance=~"$instance"'
  )

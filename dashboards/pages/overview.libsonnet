// SLA overview: every layer of every cluster against the day it was accepted, and which one is to blame.
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local t = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/overview.libsonnet')(config);

  // From the bottom up, each with the page that shows it.
  local pageOf = [
    ['network', 'network'],
    ['disk', 'disks'],
    ['osd', 'osds'],
    ['rados', 'pools'],
    ['rbd', 'rbd'],
    ['filesystem', 'probes'],
    ['object', 'probes'],
    ['client', 'rbd'],
  ];
  local layers = [each[0] for each in pageOf];
  local tolerance = config.minimumTolerance;

  // Grey below zero and where nothing is judged: no colour but a verdict's.
  local steps = [[null, p.colour.neutral], [0, p.colour.good]] + t.degradation[1:];
  local layerColours = [p.fixedColour('/^%s$/' % layer, p.colour.layer[layer]) for layer in layers];
  local rowOf(page, more={}) = links.to(page, { cluster: '${__data.fields.cluster:percentencode}' } + more);
  local matrixLinks = { [each[0]]: [rowOf(each[1], if each[1] == 'probes' then { layer: each[0] } else {})] for each in pageOf };
  local node = links.fromRow('node', ['cluster', 'instance']);
  local disk = links.fromRow('disk', ['cluster', 'instance', 'device']);
  local nic = links.fromRow('nic', ['cluster', 'instance', 'device']);
  local osd = links.fromRow('osd', ['cluster', 'ceph_daemon']);
  local probe = links.fromRow('probes', ['cluster', 'instance', 'probe']);

  local stat(title, description, query, steps, noValue, page=null, decimals=0) = [
    p.stat(title, description, 'none', p.target(query, title, instant=true), steps, noValue, decimals=decimals)
    + (if page == null then {} else p.linked([links.to(page)])),
    3,
    4,
  ];

  // The first row says whether somebody has to get up, the second what the first is worth.
  local stats = [
    stat('Ceph health', 'What Ceph says of itself, of the worst cluster: 0 is HEALTH_OK, 1 HEALTH_WARN, 2 HEALTH_ERR. The table of alerts names the checks that matter. Bad looks like: 2, or 1 for longer than somebody works on it.', q.stats.health, t.few[0:2] + [[2, p.colour.bad]], page='pools', noValue='no data from Ceph'),
    stat('OSDs down', 'OSDs that are down now, in all clusters. Bad looks like: more than 0 while nobody works on them.', q.stats.osdsDown, t.none, page='osds', noValue='no data from Ceph'),
    stat('Degraded', 'Copies of objects that are missing until Ceph has made them again, in all clusters. Bad looks like: more than 0, and not falling.', q.stats.degraded, t.few, page='pools', noValue='no data from Ceph'),
    stat('Silent nodes', 'Nodes that Prometheus is configured to scrape and whose daemon does not answer: nothing below says anything about them. Bad looks like: more than 0.', q.stats.silent, t.none, 'no daemon is scraped'),
    stat('Pages', 'Critical alerts that fire now: they page somebody. The table of alerts names them. Bad looks like: more than 0.', q.stats.pages, t.none, 'rules not loaded'),
    stat('Tickets', 'Warnings that fire now: to be looked at in working hours. Bad looks like: more than last week.', q.stats.tickets, t.few, 'rules not loaded'),
    stat('Worst ratio', 'The worst ratio of all layers, hosts and clusters: 1 is as accepted, 2 is twice as bad. Judged by the baseline in force of each host. Bad looks like: above %g (yellow) and staying there; red from %g.' % [tolerance, tolerance * config.canary.beyond], q.stats.worst, t.degradation, decimals=2, noValue='no baseline'),
    stat('In recovery', 'Clusters that move data now, which slows all of their layers; tickets about latency are held back meanwhile. Bad looks like: more than 0 for hours.', q.stats.recovering, t.few, page='pools', noValue='no data from Ceph'),
    stat('Clusters', 'Clusters with at least one daemon that is scraped; a site whose scrapes name no cluster has one. Bad looks like: fewer than you have.', q.stats.clusters, t.neutral, 'no daemon is scraped'),
    stat('Nodes', 'Nodes whose daemon answers. Bad looks like: fewer than you have; those that stopped answering are counted in the next panel.', q.stats.nodes, t.neutral, 'no daemon is scraped'),
    stat('No baseline', 'Measured figures without a baseline to judge them. Bad looks like: more than 0 on nodes in service: record one with "plumbline baseline record".', q.stats.withoutBaseline, t.few, page='probes', noValue='no probes'),
  ];

  local now = [
    [
      p.matrix(
        'Degradation by layer and cluster',
        'Measured divided by baseline for latency, baseline divided by measured for IOPS and throughput, worst host of each cluster and layer: 1 is as accepted, 2 is twice as bad. The baseline is the one in force on each host: recorded there, else the site\'s, else a documented profile the site chose. "not judged": measured, but no baseline is in force; empty: not measured at all. What fires without a baseline is in the matrix beside it. Bad looks like: yellow from %g on, red from %g on; a click leads to the layer.' % [tolerance, t.degradation[2][0]],
        'none', q.matrix, 'cluster', 'layer', layers, steps,
        links=matrixLinks,
        decimals=2, words={ '-1': 'not judged' }
      ),
      15,
      4,
    ],
    [
      p.matrix(
        'Firing alerts by layer and cluster',
        'How many alerts fire for each layer, except those of level info: including what no baseline judges, such as a disk that is slower than its peers or a port that loses frames. "self" is the hosts: their daemons, and what watches the probes. Bad looks like: any number; a click leads to the layer.',
        'none', q.blame.firing, 'cluster', 'layer', ['self'] + layers, [[null, p.colour.neutral], [1, p.colour.warning]],
        links=matrixLinks { 'self': [rowOf('probes')] }, decimals=0
      ),
      24,
      4,
    ],
  ];

  local blame = [
    [
      p.figures(
        'Suspected layer of each cluster',
        'The lowest layer that is out of line in a way that makes other hosts wait: the layers above it wait for this one. Taken from the alerts themselves, with its worst ratio to the baseline in force and the number of hosts on which it is out of line. Bad looks like: any row; an empty table means that no layer is suspected.',
        [['cluster', 'cluster', null], ['layer', 'suspected layer', null]],
        [
          { expr: q.blame.cluster, name: null },
          { expr: q.blame.clusterDegradation, name: 'degradation', unit: 'none', steps: t.degradation },
          { expr: q.blame.clusterHosts, name: 'hosts', unit: 'none' },
        ],
        sort='degradation'
      ),
      8,
      5,
    ],
    [
      p.figures(
        'Suspected layer of each host',
        'The lowest layer out of line on each host, how far its measurements are from the baseline in force there, and how many alerts fire for the host. "self": its daemon does not answer. Bad looks like: one host alone (a part of it), or all hosts with the same layer (what they share).',
        [['cluster', 'cluster', null], ['instance', 'node', [node]], ['layer', 'suspected layer', null]],
        [
          { expr: q.blame.host, name: null },
          { expr: q.blame.hostDegradation, name: 'degradation', unit: 'none', steps: t.degradation },
          { expr: q.blame.hostFiring, name: 'alerts', unit: 'none' },
        ],
        sort='degradation'
      ),
      9,
      5,
    ],
    [
      p.figures(
        'Suspected OSDs',
        'The OSDs that are out of line with their class, and what each is suspected of: its disk, its host, the network, a limit, its queue. What only waits for another OSD is left out. How it is known: the page "OSDs". Bad looks like: any row; an empty table means that no OSD is suspected, or that fewer than %d of a class are at work.' % config.osd.minimumOsds,
        [['cluster', 'cluster', null], ['ceph_daemon', 'OSD', [osd]], ['verdict', 'suspected', null]],
        [{ expr: q.blame.osds, name: null }]
      ),
      7,
      5,
    ],
  ];

  local alerts = [
    [
      p.figures(
        'Out of line, and since when',
        'The alerts that fire now, except those of level info. "since" is when the condition began, before its alert waited to be sure; a restart of Prometheus resets it for alerts that do not wait. Bad looks like: a critical row; start with the lowest layer: it explains those above it.',
        [
          ['severity', 'severity', null],
          ['layer', 'layer', null],
          ['alertname', 'alert', null],
          ['cluster', 'cluster', null],
          ['instance', 'node', [node]],
          ['device', 'device', [disk, nic]],
          ['ceph_daemon', 'OSD', [osd]],
          ['probe', 'probe', [probe]],
        ],
        [
          { expr: q.alerts.age, name: 'for', unit: 's' },
          { expr: q.alerts.since, name: 'since', unit: 'dateTimeAsIso' },
        ],
        wide={ alert: 250, since: 160 }
      ) + { options+: { sortBy: [{ displayName: 'severity', desc: false }, { displayName: 'for', desc: true }] } },
      24,
      8,
    ],
  ];

  local figureLabels = [
    ['cluster', 'cluster', null],
    ['instance', 'node', [node]],
    ['layer', 'layer', null],
    ['probe', 'probe', [probe]],
    ['device', 'device', [disk, nic]],
    ['ceph_daemon', 'OSD', [osd]],
    ['target', 'target', null],
    ['operation', 'operation', null],
    ['workload', 'workload', null],
    ['device_class', 'class', null],
    ['statistic', 'statistic', null],
  ];

  local worst = [
    [
      p.figures(
        'Worst latencies',
        'The 20 latencies farthest above their baseline: the median of each canary and probe, or its mean where the baseline has no median. The baseline is the one in force for the same workload, operation and configuration on the same node. Bad looks like: a ratio above %g.' % tolerance,
        figureLabels,
        [
          { expr: q.latency.ratio, name: 'degradation', unit: 'none', steps: t.degradation },
          { expr: q.latency.measured, name: 'measured', unit: 's' },
          { expr: q.latency.baseline, name: 'baseline', unit: 's' },
          { expr: q.latency.target, name: null },
        ],
        sort='degradation'
      ),
      24,
      8,
    ],
    [
      p.figures(
        'Worst IOPS and throughput',
        'The 20 rates farthest below their baseline, from the last run of each periodic probe: the ratio is baseline divided by measured, of the figure that the column "statistic" names. The baseline is the one in force for the same workload on the same node. Bad looks like: a ratio above %g.' % tolerance,
        figureLabels,
        [
          { expr: q.rate.ratio, name: 'degradation', unit: 'none', steps: t.degradation },
          { expr: q.rate.iops, name: 'IOPS', unit: 'iops' },
          { expr: q.rate.baselineIops, name: 'baseline IOPS', unit: 'iops' },
          { expr: q.rate.throughput, name: 'throughput', unit: 'Bps' },
          { expr: q.rate.baselineThroughput, name: 'baseline throughput', unit: 'Bps' },
          { expr: q.rate.target, name: null },
        ],
        sort='degradation'
      ),
      24,
      6,
    ],
  ];

  local history = [
    [
      p.timeSeries(
        'Degradation over time',
        'The worst ratio of each layer among the chosen clusters. Dashed: 1, which is as accepted, and %g, the least tolerance; a baseline with more spread while it was measured allows more. Nothing is drawn where no baseline is in force. Bad looks like: a layer that leaves the dashed lines and stays away; the lowest that does so is the one to look at.' % tolerance,
        'none', [
          p.target(q.history.degradation, '{{layer}}'),
          p.target(q.history.accepted, 'baseline: as accepted'),
          p.target(q.history.tolerance, 'baseline: tolerance'),
        ], logarithmic=true, overrides=layerColours
      ),
      12,
      9,
    ],
    [
      p.states(
        'Layers out of line',
        'For each layer whether alerts say that it is out of line: on a host, or in a way that makes other hosts wait. A layer that is judged and in line is green; one that no baseline judges and no alert names is not drawn. Bad looks like: a red stretch; read from the bottom layer upwards.',
        'none', [p.target(q.history.outOfLine, '{{cluster}} {{layer}}')],
        [[null, p.colour.good], [1, p.colour.warning], [2, p.colour.bad]]
      ) + {
        fieldConfig+: { defaults+: { mappings: [{
          type: 'value',
          options: {
            '0': { index: 0, text: 'in line', color: p.colour.good },
            '1': { index: 1, text: 'on a host', color: p.colour.warning },
            '2': { index: 2, text: 'for others, too', color: p.colour.bad },
          },
        }] } },
      },
      12,
      9,
    ],
    [
      p.states(
        'Recovery',
        'Whether a cluster recovers or backfills: data moves, and every layer above the disks is slower meanwhile. Bad looks like: a stretch of many hours, or one that begins again and again.',
        'none', [p.target(q.history.recovery, '{{cluster}}')],
        t.few
      ) + {
        fieldConfig+: { defaults+: { mappings: [{
          type: 'value',
          options: { '0': { index: 0, text: 'none', color: p.colour.good }, '1': { index: 1, text: 'recovery', color: p.colour.warning } },
        }], noValue: 'no data from Ceph' } },
      },
      24,
      3,
    ],
  ];

  dashboard.new(
    'overview',
    [variables.datasource, variables.cluster],
    [
      { title: null, panels: stats + now },
      { title: 'To blame', panels: blame },
      { title: 'Alerts', panels: alerts },
      { title: 'Over time', panels: history },
      { title: 'Worst figures', panels: worst, closed: true },
    ],
    from='now-24h'
  )

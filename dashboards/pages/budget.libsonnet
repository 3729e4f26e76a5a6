// Latency budget: where does the time of one operation go, compared with the documented stack?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local variables = import '../lib/variables.libsonnet';
  local q = (import '../queries/budget.libsonnet')(config);

  local stages = ['network', 'ack', 'device', 'store', 'osd', 'replica', 'client', 'code'];
  local coloured = [[stage, p.colour.stage[stage]] for stage in stages];
  local colours(names) = [p.fixedColour('/^%s$/' % name, p.colour.stage[name]) for name in names];
  local whole(name) = {
    matcher: { id: 'byName', options: name },
    properties: [
      { id: 'custom.stacking', value: { mode: 'none', group: 'A' } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'color', value: { mode: 'fixed', fixedColor: p.colour.neutral } },
    ],
  };
  local first = [
    [p.stat('One write here', 'The total that the panels below divide: the mean of one 4 KiB write, one in flight, as a client sees it. Continuously by the RADOS canary, and by each run of an RBD probe of such a workload; the latest of the range. Bad looks like: a multiple of what it was when accepted.', 's', p.target(q.state.whole, '{{workload}} {{device_class}}', instant=true), thresholds.neutral, noValue='no canary or RBD probe'), 8, 4],
    [p.stat('Documented, fastest link', 'The total of the fastest documented stack for the same operation: seed 003, slide 47, in 2013 on PCIe SSDs, another site\'s hardware. Bad looks like: nothing; it is for orientation.', 's', p.target(q.state.documented, 'documented', instant=true), thresholds.neutral, noValue='no node measures RADOS or RBD'), 8, 4],
    [p.stat('Left for the client', 'The total minus what the OSDs and the network take: the client\'s own software. Negative: the parts exceed the whole, because the OSDs also served other, larger or slower writes meanwhile; no stack is drawn then. Bad looks like: negative all the time: then measure on a quieter cluster.', 's', p.target(q.state.rest, '{{workload}} {{device_class}}', instant=true), [[null, p.colour.warning], [0, p.colour.good]], noValue='a part is missing'), 8, 4],
    [p.stackedBars(
      'One 4 KiB write, here and as documented',
      'Each bar is one write, one in flight, in the stages it passes. Here: network is two mean round trips (to the primary, and on to the replica as far as that is waited for); device one write and one flush of the slowest disk of an OSD; store the rest of its commit; osd queueing and preparing; replica the wait for replicas beyond that; client the rest. Means of five minutes over the OSDs of a class, which hold all their client writes, not the probe\'s alone; the payload\'s own time on the wire is in client and replica. Each stage is the latest of the range. Documented: network is two passes of the data, ack five answers, device one write, code all software together (osd, store, replica and client here). Bad looks like: one stage several times the documented one.',
      's', q.stacks, 'bar', 'part', coloured
    ), 24, 12],
  ];

  local live = [
    [p.stacked(
      'The live stack over time',
      'The RADOS canary\'s mean write in its stages, as above, at every moment; the line is the total. Where the parts exceed the whole there is a gap. Bad looks like: one colour growing: that layer; the links lead to it.',
      's', [p.target(q.over.stage, '{{stage}}'), p.target(q.over.whole, 'whole write')], overrides=colours(['network', 'device', 'store', 'osd', 'replica', 'client']) + [whole('whole write')]
    ) + p.linked([links.to('network'), links.to('disks'), links.to('osds'), links.to('rbd')]), 14, 10],
    [p.figures(
      'The latest live stacks, stage by stage',
      'The figures behind the bars: seconds of each stage and its share of the whole, of each workload that is divided into stages. Bad looks like: a share that was never so large.',
      [['workload', 'workload', null], ['device_class', 'class', null], ['stage', 'stage', null], ['cluster', 'cluster', null]],
      [
        { expr: q.table.seconds, name: 'time', unit: 's' },
        { expr: q.table.share, name: 'share', unit: 'percentunit' },
      ],
      sort='time'
    ), 10, 10],
    [p.timeSeries(
      'The total and the documented totals',
      'One write here over time, by the canary and by each run of an RBD probe; dotted: the documented totals, one for each kind of link. Bad looks like: leaving its own past.',
      's', [p.target(q.parts.whole, '{{workload}} {{device_class}}'), p.target(q.parts.wholeDocumented, 'documented {{device_class}} ({{profile}})')], logarithmic=true
    ) + p.linked([links.to('rbd')]), 8, 8],
    [p.timeSeries(
      'Left for the client, over time',
      'The total minus OSDs and network. Below 0 the parts exceed the whole and no stack is drawn: they were not measured on the same writes. Bad looks like: growing: the client\'s host or software; below 0 for long: no statement is possible.',
      's', [p.target(q.over.rest, '{{workload}} {{device_class}}')], min=null
    ), 8, 8],
  ];

  local parts = [
    [p.stacked(
      'Inside the OSD',
      'The mean write in the primary: queue, prepare, its own store, and the wait for replicas. Mean over the OSDs of the class, each counted once, client writes of all sizes. Bad looks like: one part growing; the OSDs\' page says which OSD.',
      's', [p.target(q.parts.osd, '{{part}}')], overrides=colours(['queue', 'prepare', 'store', 'peers'])
    ) + p.linked([links.to('osds')]), 8, 8],
    [p.timeSeries(
      'The device',
      'One write and one flush of the slowest disk of each OSD, mean over the class: by the kernel\'s histograms, else its sums. The least that a commit takes; where it takes longer than the store, the store is not divided. Dotted: the documented one. Bad looks like: leaving its own past.',
      's', [p.target(q.parts.device, '{{device_class}}'), p.target(q.parts.documentedDevice, 'documented ({{profile}})')], logarithmic=true
    ) + p.linked([links.to('disks')]), 8, 8],
    [p.timeSeries(
      'The network\'s round trip',
      'Mean round trip of a small packet between nodes, over all pairs that are measured: by ping, else by TCP handshakes. Dashed: the baseline in force; dotted: documented. Without such a probe the network is in client and replica. Bad looks like: above the dashed line.',
      's', [
        p.target(q.parts.roundTrip, 'round trip'),
        p.target(q.parts.roundTripBaseline, 'baseline {{workload}} {{device_class}} ({{source}})'),
        p.target(q.parts.roundTripDocumented, 'documented {{workload}} {{device_class}} ({{profile}})'),
      ], logarithmic=true
    ) + p.linked([links.to('network')]), 8, 8],
  ];

  local documented = [
    [p.figures(
      'The documented stacks',
      'Every documented stack: 4 KiB and 8 KiB writes over five kinds of link, all passes of a stage together, and its share. Source: the profile fujitsu-2013 (seed 003, slide 47), where code is the remainder of the other columns. Bad looks like: nothing; it is another site\'s hardware.',
      [['profile', 'profile', null], ['workload', 'workload', null], ['device_class', 'link', null], ['stage', 'stage', null]],
      [
        { expr: q.documented.seconds, name: 'time', unit: 's' },
        { expr: q.documented.share, name: 'share', unit: 'percentunit' },
      ],
      sort='time'
    ), 24, 10],
  ];

  dashboard.new(
    'budget',
    [variables.datasource, variables.cluster, variables.device_class],
    [
      { title: null, panels: first },
      { title: 'Here, over time', panels: live },
      { title: 'The parts, each by itself', panels: parts, closed: true },
      { title: 'The documented stacks in figures', panels: documented, closed: true },
    ],
    from='now-24h'
  )

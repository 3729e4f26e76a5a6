// The OSDs whose daemons run on one node. Where the time of one of them goes stands on its own page.
function(config)
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local thresholds = (import '../lib/thresholds.libsonnet')(config);
  local q = import '../queries/node.libsonnet';

  local toOsd = links.fromRow('osd', ['cluster', 'ceph_daemon']);
  local osdOfSeries = p.linked([links.fromSeries('osd', ['cluster', 'ceph_daemon'])]);

  [
    [p.figures(
      'OSDs of this node',
      'Whether each is up, what it does, how long client operations take (mean by Ceph\'s counters, p99 by its own histograms), its worst figure against the OSDs of its class, operations over Ceph\'s complaint time, its slowest peer by heartbeats, and what Plumbline suspects. Empty where no OSD runs. Bad looks like: one OSD away from the others here (its disk), or all of them away from the cluster (this host).',
      [['cluster', 'cluster', null], ['ceph_daemon', 'OSD', [toOsd]], ['device_class', 'class', null], ['verdict', 'suspected', null]],
      [
        { expr: q.osds.info, name: null, unit: 'none' },
        { expr: q.osds.suspected, name: null, unit: 'none' },
        { expr: q.osds.up, name: 'up', unit: 'none', steps: thresholds.yes },
        { expr: q.osds.operations, name: 'operations', unit: 'iops' },
        { expr: q.osds.mean('read'), name: 'mean read', unit: 's' },
        { expr: q.osds.mean('write'), name: 'mean write', unit: 's' },
        { expr: q.osds.p99('read'), name: 'p99 read', unit: 's' },
        { expr: q.osds.p99('write'), name: 'p99 write', unit: 's' },
        { expr: q.osds.toClass, name: 'to its class', unit: 'none', steps: [[null, p.colour.good], [config.osd.ratio, p.colour.bad]] },
        { expr: q.osds.slow, name: 'slow operations', unit: 'none' },
        { expr: q.osds.heartbeat, name: 'slowest peer', unit: 's' },
      ],
      sort='to its class', words='ceph_daemon'
    ) + p.hidden(['cluster']) + p.words('up', { '0': 'no', '1': 'yes' }), 24, 8],
    [p.timeSeries(
      'OSD latency',
      'Mean latency of client operations at each OSD here, from the message\'s arrival to the reply, replicas and queue included. Bad looks like: one OSD away from the others of its class.',
      's', [p.target(q.osds.latency, '{{ceph_daemon}} {{operation}}')], logarithmic=true
    ) + osdOfSeries, 12, 8],
    [p.timeSeries(
      'OSD operations',
      'Client operations per second at each OSD here. The load that explains the latency in the next panel. Bad looks like: latency up while this is not.',
      'iops', [p.target(q.osds.rate, '{{ceph_daemon}} {{operation}}')]
    ) + osdOfSeries, 12, 8],
  ]

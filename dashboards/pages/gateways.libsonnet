// Gateways and metadata servers: is what stands between clients and RADOS as fast as its equals and as it was?
function(config)
  local dashboard = import '../lib/dashboard.libsonnet';
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local variables = import '../lib/variables.libsonnet';
  local q = import '../queries/gateways.libsonnet';

  local limits = config.alerts.PlumblineGatewayLatencyHigh;
  local toNode = [links.to('node', { cluster: '${__data.fields.cluster}', instance: '${__data.fields.node}' })];
  local usual = 'baseline: usual {{cluster}} {{operation}}';
  local each = '{{gateway}} {{operation}}';

  local state = [
    [p.timeSeries(
      'Against the past',
      'The hour\'s mean latency of all gateways of a cluster and kind, divided by what is usual at this hour (the median of the past days). Nothing is drawn before there are %d days, or where objects are %g times as large as usual. Bad looks like: %g and above.' % [config.gateway.minimumPastDays, config.gateway.comparableSize, limits.pastRatio],
      'none', [p.target(q.ratio.past, '{{cluster}} {{layer}} {{operation}}')], logarithmic=true
    ), 8, 8],
    [p.timeSeries(
      'Against the others',
      'Mean latency of a gateway of RGW or NVMe-oF divided by the median of its kind in the cluster, from %d gateways on. Bad looks like: %g and above.' % [config.gateway.minimumGateways, limits.peersRatio],
      'none', [p.target(q.ratio.peers, each)], logarithmic=true
    ), 8, 8],
    [p.figures(
      'Health checks',
      'Ceph\'s own checks of file systems, metadata servers and NVMe-oF gateways that are raised ("ceph health detail" explains them). Bad looks like: any row.',
      [['severity', 'severity', null], ['name', 'check', null], ['cluster', 'cluster', null]],
      [{ expr: q.checks, name: 'raised', unit: 'none' }]
    ), 8, 8],
  ];

  local object = [
    [p.timeSeries(
      'RGW, latency',
      'Mean time of a get and a put in each gateway, RADOS included: the whole operation from Ceph 19 on, before that until the first byte. Dashed: usual at this hour, over all gateways. Bad looks like: away from the dashed line; one gateway above the others.',
      's', [p.target(q.object.latency, each), p.target(q.object.usual, usual)], logarithmic=true
    ), 8, 8],
    [p.timeSeries('RGW, operations', 'Gets and puts a second of each gateway. Bad looks like: one gateway without any: the load balancer has dropped it.', 'ops', [p.target(q.object.operations, each)]), 8, 8],
    [p.timeSeries('RGW, size of an operation', 'Mean bytes of a get and a put: larger objects take longer, and that is no fault. Bad looks like: nothing by itself.', 'bytes', [p.target(q.object.size, each)], logarithmic=true), 8, 8],
    [p.timeSeries('RGW, failed requests', 'Share of all requests that failed, those for what does not exist or is not allowed among them. Bad looks like: more than on other days.', 'percentunit', [p.target(q.object.failed, '{{gateway}}')]), 12, 7],
    [p.timeSeries('RGW, requests in progress', 'Requests that each gateway works on at the moment (rgw_max_concurrent_requests is the limit, 1024 by default). Bad looks like: a number that grows while operations do not.', 'none', [p.target(q.object.inProgress, '{{gateway}}')]), 12, 7],
  ];

  local filesystem = [
    [p.timeSeries(
      'Metadata servers, latency',
      'Mean time of an operation in each metadata server, from the request to the reply. Dashed: usual at this hour. Bad looks like: away from the dashed line.',
      's', [p.target(q.filesystem.latency, each), p.target(q.filesystem.usual, usual)], logarithmic=true
    ), 12, 8],
    [p.timeSeries('Metadata servers, operations', 'What clients ask of each metadata server. Bad looks like: one server with nearly all of it.', 'ops', [p.target(q.filesystem.operations, each)]), 12, 8],
    [p.timeSeries(
      'Metadata servers, journal',
      'Segments of the journal that are not trimmed yet (Ceph raises MDS_TRIM at twice mds_log_max_segments). A long journal makes the next takeover long. Bad looks like: segments that grow without end.',
      'none', [p.target(q.filesystem.segments, 'segments {{ceph_daemon}}')]
    ), 8, 7],
    [p.timeSeries('Metadata servers, write to the journal', 'Mean time of one write to the journal, which is RADOS: the metadata pool\'s OSDs. Bad looks like: rising together with the latency above.', 's', [p.target(q.filesystem.journal, '{{gateway}}')], logarithmic=true), 8, 7],
    [p.timeSeries('Metadata servers, sessions and capabilities', 'Clients with a session, the capabilities that they hold, and the inodes in the cache. Bad looks like: capabilities near the inodes in the cache: clients do not give back what the server wants to drop (MDS_CLIENT_RECALL).', 'none', [p.target(q.filesystem.sessions, 'sessions {{ceph_daemon}}'), p.target(q.filesystem.caps, 'capabilities {{ceph_daemon}}'), p.target(q.filesystem.inodes, 'inodes {{ceph_daemon}}')], logarithmic=true), 8, 7],
  ];

  local client = [
    [p.timeSeries(
      'NVMe-oF, latency',
      'Mean time of a read and a write in each NVMe-oF gateway, over its volumes, RADOS included. Dashed: usual at this hour. Bad looks like: away from the dashed line; one gateway above the others.',
      's', [p.target(q.client.latency, each), p.target(q.client.usual, usual)], logarithmic=true
    ), 12, 8],
    [p.timeSeries('NVMe-oF, operations', 'Reads and writes a second of each gateway. Bad looks like: a gateway without any, while another has twice as many.', 'iops', [p.target(q.client.operations, each)]), 12, 8],
    [p.alerts('Alerts of these layers that fire', 'What fires in the layers object, filesystem and client, the longest on top. Bad looks like: any row.', q.firing, toNode), 24, 6],
  ];

  local fileservers = [
    [p.states(
      'Bricks, peers, chunkservers',
      'Whether each GlusterFS brick is up, some glusterd connected to each peer, each volume has server quorum, and, of MooseFS, each chunkserver connected. Bad looks like: red.',
      'none', [
        p.target(q.fileserver.bricks, '{{volume}}: {{brick}}'),
        p.target(q.fileserver.peers, 'peer {{peer}}'),
        p.target(q.fileserver.quorum, 'quorum of {{volume}}'),
        p.target(q.fileserver.chunkservers, 'chunkserver {{chunkserver}}'),
      ], [[null, p.colour.bad], [1, p.colour.good]]
    ), 12, 8],
    [p.timeSeries(
      'Copies that are missing',
      'GlusterFS: entries that a brick has to bring to others, counted by one node of the pool. MooseFS: chunks without a valid copy (missing), with a single one although more are wanted (endangered), and with fewer than wanted (undergoal). Bad looks like: anything that stays above 0 while all bricks and chunkservers are up; missing at all.',
      'none', [
        p.target(q.fileserver.heals, 'to be healed, {{volume}}: {{brick}}'),
        p.target(q.fileserver.chunks, '{{state}}'),
      ]
    ), 12, 8],
  ];

  dashboard.new(
    'gateways',
    [variables.datasource, variables.cluster],
    [
      { title: null, panels: state },
      { title: 'Object: RGW', panels: object },
      { title: 'Filesystem: metadata servers of CephFS', panels: filesystem },
      { title: 'Filesystem: servers of GlusterFS and MooseFS', panels: fileservers },
      { title: 'Client: NVMe-oF gateways, and alerts', panels: client },
    ],
    shown='layer=~"object|filesystem|client"', baselines='',
    empty='not measured here, or no data from Ceph, GlusterFS or MooseFS'
  )

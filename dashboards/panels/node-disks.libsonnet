// The disks of one node. What one of them does in detail stands on its own page.
function(config)
  local links = import '../lib/links.libsonnet';
  local p = import '../lib/panels.libsonnet';
  local q = import '../queries/node.libsonnet';

  local alerts = config.alerts;
  local toDisk = links.fromRow('disk', ['cluster', 'instance', 'device']);
  local toOsd = links.to('osd', { cluster: '${__data.fields.cluster:percentencode}', ceph_daemon: '${__data.fields.osd:percentencode}' });
  local diskOfSeries = p.linked([links.fromSeries('disk', ['cluster', 'instance', 'device'])]);
  local hidden = p.hidden(['cluster', 'instance']);
  // The rows carry cluster and node for their links; the page says both already.
  local disk = [['cluster', 'cluster', null], ['instance', 'instance', null], ['device', 'disk', [toDisk]]];

  [
    [p.figures(
      'Disks',
      'What is behind each device name, the class that decides which baselines and peers it is compared with, and what it does now: operations, share of time busy, the slowest hundredth of its operations, and that against its peers. Bad looks like: peers with different firmware, or a disk at %g times its peers.' % alerts.PlumblineDiskLatencyOutlier.ratio,
      disk + [['device_class', 'class', null], ['model', 'model', null], ['serial', 'serial', null], ['firmware', 'firmware', null], ['transport', 'transport', null], ['osd', 'OSD', [toOsd]]],
      [
        { expr: q.disk.info, name: null, unit: 'none' },
        { expr: q.disk.allOperations, name: 'operations', unit: 'iops' },
        { expr: q.disk.busyShare, name: 'busy', unit: 'percentunit' },
        { expr: q.disk.worstP99, name: 'p99', unit: 's' },
        { expr: q.disk.worstPeerRatio, name: 'p99 to peers', unit: 'none', steps: [[null, p.colour.good], [alerts.PlumblineDiskLatencyOutlier.ratio, p.colour.bad]] },
      ],
      sort='p99 to peers', words='device'
    ) + hidden, 24, 8],
    [p.timeSeries(
      'Disk p99 against its peers',
      'The slowest hundredth of each disk\'s operations over 5 minutes; grey and dashed the median over the disks of its class and transport here. Idle disks have none. Bad looks like: one disk a decade above the dashed line.',
      's', [
        p.target(q.disk.p99, '{{device}} {{operation}}'),
        p.target(q.disk.peerP99, 'baseline: peers {{operation}}'),
      ], logarithmic=true
    ) + diskOfSeries, 8, 9],
    [p.timeSeries(
      'Disk tail against peers and past',
      'p99 divided by the peers\' median and by what is usual at this hour: 1 is the same as the others, or as usual. Disks with other work than their peers are left out. Bad looks like: %g and more, where an alert fires.' % alerts.PlumblineDiskLatencyOutlier.ratio,
      'none', [
        p.target(q.disk.peerRatio, '{{device}} {{operation}} to peers'),
        p.target(q.disk.pastRatio, '{{device}} {{operation}} to past'),
      ], logarithmic=true
    ) + diskOfSeries, 8, 9],
    [p.timeSeries(
      'Disk mean against its equals',
      'The mean of %s divided by the median of disks of one model, on this host or in the cluster: 1 is the same as the others. Dashed red: the limit by class and place; it grows with the load of a disk that serves more than its equals. Bad looks like: above the limit, where an alert fires.' % config.disk.mean.window,
      'none', [
        p.target(q.disk.meanRatio, '{{device}} {{operation}}'),
        p.target(q.disk.meanLimit, 'limit {{device_class}} ({{among}})'),
      ], logarithmic=true
    ) + diskOfSeries, 8, 9],
    [p.timeSeries(
      'Mean disk latency',
      'Kernel time per completed operation, queueing in the block layer included, over all clients of the disk (diskstats). A mean hides the slow tail: the canary and the p99 show it. Bad looks like: one disk away from its peers.',
      's', [p.target(q.disk.latency, '{{device}} {{operation}}')], logarithmic=true
    ) + diskOfSeries, 8, 8],
    [p.timeSeries(
      'Disk operations',
      'Completed operations per second by kind. The load that explains the latency in the next panel. Bad looks like: latency up while this is not.',
      'iops', [p.target(q.disk.operations, '{{device}} {{operation}}')]
    ) + diskOfSeries, 8, 8],
    [p.timeSeries(
      'Disk busy share and queue',
      'Share of time with at least one operation in flight, and operations in flight on average. On SSD and NVMe a busy share of 100 % is not saturation. Bad looks like: the queue growing while throughput does not.',
      'none', [
        p.target(q.disk.busy, '{{device}} busy share'),
        p.target(q.disk.queue, '{{device}} in flight'),
      ]
    ) + p.linked([links.fromSeries('disk', ['cluster', 'instance', 'device'])]), 8, 8],
    [p.figures(
      'Disk health',
      'What each disk reports by NVMe or SMART; empty where it reports nothing. Endurance is the time until its rated writes are used up. Bad looks like: answers "no", spare near the disk\'s own threshold, errors or sectors that grow, less than %d days left.' % alerts.PlumblineDiskWearOut.days,
      disk,
      [
        { expr: q.health.available, name: 'answers', unit: 'none' },
        { expr: q.health.wear, name: 'wear', unit: 'percentunit' },
        { expr: q.health.enduranceLeft, name: 'endurance left', unit: 's' },
        { expr: q.health.spare, name: 'spare', unit: 'percentunit' },
        { expr: q.health.mediaErrors, name: 'media errors', unit: 'none' },
        { expr: q.health.reallocated, name: 'reallocated sectors', unit: 'none' },
        { expr: q.health.pending, name: 'pending sectors', unit: 'none' },
        { expr: q.health.interfaceErrors, name: 'interface errors', unit: 'none' },
        { expr: q.health.temperature, name: 'temperature', unit: 'celsius' },
      ],
      sort='wear', words='device'
    ) + p.words('answers', { '0': 'no', '1': 'yes' }) + hidden, 24, 7],
    [p.figures(
      'PCIe links',
      'The links of disks, host adapters and network cards: bandwidth against what both ends can do, errors since boot (AER). Bad looks like: a share below 100 %, or errors that grow.',
      [
        ['pci_address', 'address', null],
        ['device_type', 'type', null],
        ['physical_slot', 'slot', null],
        ['numa_node', 'NUMA node', null],
        ['driver', 'driver', null],
        ['product', 'product', null],
      ],
      [
        { expr: q.pcie.info, name: null, unit: 'none' },
        { expr: q.pcie.ratio, name: 'of maximum', unit: 'percentunit' },
        { expr: q.pcie.speed, name: 'transfers per second', unit: 'none' },
        { expr: q.pcie.lanes, name: 'lanes', unit: 'none' },
        { expr: q.pcie.errors, name: 'errors', unit: 'none' },
      ]
    ), 14, 7],
    [p.timeSeries(
      'Arrays, pools and paths',
      'Disks missing from md arrays, arrays that do not run, vdevs of ZFS pools that are not healthy, multipath paths that are broken or gone. Bad looks like: anything above 0.',
      'none', [
        p.target(q.array.degraded, '{{device}} disks lacking'),
        p.target(q.array.dead, '{{device}} does not run'),
        p.target(q.array.vdevs, '{{pool}} vdevs'),
        p.target(q.array.paths, '{{device}} paths lost'),
        p.target(q.array.sync, '{{device}} rebuilt'),
      ]
    ), 10, 7],
  ]

// The queries of the gateways' page. The rules (alerts/rules/gateway.libsonnet) have made one series of each figure.
local matchers = import '../lib/matchers.libsonnet';
local firing = import 'firing.libsonnet';

local sel = matchers.selector('cluster=~"$cluster"');
local gateway = 'cluster, gateway, operation';
local of(layer, metric) = 'max by (%s) (plumbline:gateway_%s%s)' % [gateway, metric, sel('layer="%s"' % layer)];
local usual(layer) = 'max by (cluster, operation) (plumbline:gateway_usual:figure%s)' % sel('layer="%s", figure="latency"' % layer);
local mds(metric) = 'max by (cluster, ceph_daemon) (%s%s)' % [metric, sel()];

{
  ratio: {
    past: 'max by (cluster, layer, operation) (plumbline:gateway_latency_past:ratio%s)' % sel(),
    peers: 'max by (cluster, gateway, operation) (plumbline:gateway_latency_peers:ratio%s)' % sel(),
  },
  object: {
    latency: of('object', 'latency:mean5m'),
    usual: usual('object'),
    operations: of('object', 'operations:rate5m'),
    size: of('object', 'size:bytes'),
    failed: 'max by (cluster, gateway) (plumbline:gateway_failed:rate5m%(sel)s / (plumbline:gateway_requests:rate5m%(sel)s > 0))' % { sel: sel() },
    inProgress: 'max by (cluster, gateway) (plumbline:gateway_in_progress:count%s)' % sel(),
  },
  filesystem: {
    latency: of('filesystem', 'latency:mean5m'),
    usual: usual('filesystem'),
    operations: of('filesystem', 'operations:rate5m'),
    journal: 'max by (cluster, gateway) (plumbline:mds_journal_latency:mean5m%s)' % sel(),
    segments: mds('ceph_mds_log_seg'),
    sessions: mds('ceph_mds_sessions_session_count'),
    caps: mds('ceph_mds_caps'),
    inodes: mds('ceph_mds_inodes'),
  },
  client: {
    latency: of('client', 'latency:mean5m'),
    usual: usual('client'),
    operations: of('client', 'operations:rate5m'),
  },
  checks: 'max by (cluster, name, severity) (ceph_health_detail%s) == 1' % sel('name=~"MDS_.+|FS_.+|NVMEOF_.+"'),
  firing: firing('cluster=~"$cluster", layer=~"object|filesystem|client"'),
  fileserver: {
    local up(by, metric) = 'max by (cluster, %s) (%s%s)' % [by, metric, sel()],
    bricks: up('volume, brick', 'plumbline_gluster_brick_up'),
    peers: up('peer', 'plumbline_gluster_peer_connected'),
    chunkservers: up('chunkserver', 'plumbline_moosefs_chunkserver_connected'),
    quorum: up('volume', 'plumbline_gluster_server_quorum'),
    heals: 'max by (cluster, volume, brick) (plumbline_gluster_heal_pending_entries%s)' % sel(),
    chunks: 'max by (cluster, state) (plumbline_moosefs_chunks%s)' % sel('state=~"missing|endangered|undergoal"'),
  },
}

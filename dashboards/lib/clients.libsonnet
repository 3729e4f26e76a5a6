// Who has operations in flight on OSDs, where nodes list the clients of pools (ceph.client_pools): a query and its table.
local p = import 'panels.libsonnet';

{
  // `nodes`: a condition on the nodes, or ''. The pool's name is there if a manager is scraped.
  query(nodes)::
    local listed = 'topk(20, sum by (cluster, pool_id, kind, owner) (plumbline_osd_client_operations{cluster=~"$cluster"}%s))' % nodes;
    local pool = 'max by (cluster, pool_id, name) (ceph_pool_metadata{cluster=~"$cluster"})';
    '%s * on (cluster, pool_id) group_left (name) %s or on (cluster, pool_id, kind, owner) %s' % [listed, pool, listed],

  table(title, where, expr)::
    p.figures(
      title,
      'Images (by id), buckets (by marker), files (by inode) and namespaces with the most operations in flight on %s, mean of two minutes: how many operations the OSDs work on for each at a time. Only pools in ceph.client_pools of the nodes\' configuration are listed; "plumbline ceph top --clients" on a node looks at all. Bad looks like: one row far above the others.' % where,
      [['name', 'pool', null], ['pool_id', 'pool number', null], ['kind', 'kind', null], ['owner', 'what', null], ['cluster', 'cluster', null]],
      [{ expr: expr, name: 'in flight', unit: 'none' }],
      sort='in flight', empty='no pool listed'
    ),
}

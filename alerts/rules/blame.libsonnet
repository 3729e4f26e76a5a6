// Blame: the layers that are out of line, and the lowest of them, for each host and for each cluster. The alerts
// themselves are the source, so that blame and pages can't tell two stories.
local layers = import '../lib/layers.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local blame = config.blame,
  local clusters = promql.clusterLabels(config),
  local everywhere = [blame.cluster, blame.woken, blame.hung],

  local suspects(kinds, names) = std.rstripChars(layers.alerts(
    kinds,
    names,
    config.instanceLabels + ['layer', 'device', 'ceph_daemon', 'probe', 'alertname', 'alertstate']
  ), '\n'),

  // How many times as slow as its equals a part is, for the layers where that is one figure.
  local slowness = {
    disk: { part: config.instanceLabels + ['device'], ratio: 'plumbline:disk_mean_equals:ratio or plumbline:disk_latency_peers:ratio' },
    osd: { part: clusters + ['ceph_daemon'], ratio: 'plumbline:osd_class:ratio' },
  },

  // The worst first: less than a whole place, so that the layers keep their order.
  local parts(layer) =
    local placed = '%s * %d' % [suspects([blame.cluster, blame.suspected], [layer]), std.find([layer], blame.order)[0] + 1];
    if !(layer in slowness) then placed else std.rstripChars(|||
      %(placed)s
      - on (%(part)s) group_left ()
      (1 - 1 / clamp_min(max by (%(part)s) (%(ratio)s), 1))
      or
      %(placed)s
    ||| % { placed: placed, part: promql.join(slowness[layer].part), ratio: slowness[layer].ratio }, '\n'),

  // The alert is about all interfaces of a role. Suspected are those whose MTU is not that of most, before what follows
  // from it on others.
  local wrongMtus = std.rstripChars(|||
    max by (%(part)s) (
      %(alert)s
      * on (%(role)s) group_right (layer, alertname, alertstate)
      (
        plumbline:nic_role_mtu:bytes
        != on (%(role)s) group_left ()
        quantile by (%(role)s) (0.5, plumbline:nic_role_mtu:bytes)
      )
    ) * 0 + %(place)g
  ||| % {
    local role = clusters + ['role'],
    local known = ['layer', 'alertname', 'alertstate'],
    part: promql.join(config.instanceLabels + ['device'] + known),
    role: promql.join(role),
    alert: promql.nested(std.rstripChars(layers.alerts([blame.mtu], ['network'], role + known), '\n')),
    place: std.find(['network'], blame.order)[0] + 0.5,
  }, '\n'),

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-blame.rules',
      rules: [
        {
          record: 'plumbline:layer_out_of_line:bool',
          expr: layers.outOfLine([blame.host, blame.woken], config.instanceLabels),
        },
        {
          // RADOS and what stands on it is served by all hosts: a probe here waits for a disk there.
          record: 'plumbline:layer_out_of_line_cluster:bool',
          expr: layers.outOfLine(everywhere, clusters),
        },
        {
          // An alert about the cluster as such is on no host.
          record: 'plumbline:blamed_layer:info',
          expr: layers.lowest(
            blame.order, 'plumbline:layer_out_of_line:bool', config.instanceLabels, ['instance!=""']
          ),
        },
        {
          record: 'plumbline:blamed_layer_cluster:info',
          expr: layers.lowest(blame.order, 'plumbline:layer_out_of_line_cluster:bool', clusters),
        },
        {
          // What a page about a client's layer may follow from; the value is the place of its layer in the order, less for a
          // part that is slower than others of its layer. A host that is gone stands for all on it, a disk for its OSD.
          record: 'plumbline:suspected:info',
          expr: |||
            %(hosts)s
            or
            (
              %(parts)s
            )
            unless on (%(instance)s)
            %(hosts)s
            unless on (%(osd)s)
            (
              plumbline:osd_disk:info
              and on (%(device)s)
              %(disks)s
            )
          ||| % {
            instance: promql.join(config.instanceLabels),
            osd: promql.join(clusters + ['ceph_daemon']),
            device: promql.join(config.instanceLabels + ['device']),
            hosts: suspects([blame.gone], ['self']),
            parts: promql.nested(std.join('\nor\n', [wrongMtus] + [parts(layer) for layer in ['network', 'disk', 'osd']])),
            disks: promql.nested(suspects([blame.cluster, blame.suspected], ['disk'])),
          },
        },
      ],
    }],
  },
}

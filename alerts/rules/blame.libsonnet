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
          // What a page about a client's layer may follow from; the value is the place of its layer in the order. A host
          // that is gone stands for all on it, a disk for its OSD.
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
            parts: promql.nested(std.join('\nor\n', [
              '%s * %d' % [suspects([blame.cluster, blame.suspected], [layer]), std.find([layer], blame.order)[0] + 1]
              for layer in ['network', 'disk', 'osd']
            ])),
            disks: promql.nested(suspects([blame.cluster, blame.suspected], ['disk'])),
          },
        },
      ],
    }],
  },
}

// Blame: the layers that are out of line, and the lowest of them, for each host and for each cluster. The alerts
// themselves are the source, so that blame and pages can't tell two stories.
local layers = import '../lib/layers.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local blame = config.blame,
  local clusters = promql.clusterLabels(config),

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
          expr: layers.outOfLine([blame.cluster, blame.woken], clusters),
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
      ],
    }],
  },
}

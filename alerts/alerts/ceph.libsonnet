// The cluster as the probes' user sees it.
local alert = import '../lib/alert.libsonnet';

{
  local config = $._config,

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-ceph',
      rules: [
        alert.new(
          config,
          'PlumblineCephUnreachable',
          'plumbline_ceph_reachable == 0',
          { layer: 'rados', signal: 'health' },
          "Ceph's monitors do not answer the probes.",
          "Ceph's monitors do not answer {{ $labels.instance }} in time. No probe of the cluster runs there, and none that needs the cluster's lock; from one node alone it is the node's key or its network, from all of them the cluster.",
        ),
      ],
    }],
  },
}

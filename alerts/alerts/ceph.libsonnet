// The cluster as the probes' user sees it.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';

{
  local config = $._config,

  _firstSteps+:: {
    PlumblineCephUnreachable: first.probes + ' says whether the key, the network or the quorum is the reason',
  },

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
          "Ceph's monitors do not answer {{ $labels.instance }} in time. Probes of the cluster, and probes that need its lock, do not run there. If only this node reports it, check its key and its network; if all nodes do, check the cluster.",
        ),
      ],
    }],
  },
}

// How much of its bandwidth a PCIe link has trained to.
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local labels = promql.labels(config),

  local share(figure, most) = |||
    max by (%(address)s) (plumbline_pcie_link_%(figure)s)
    / max by (%(address)s) (plumbline_pcie_link_%(most)s)
  ||| % (labels { figure: figure, most: most }),

  local bandwidth = '(\n' + share('speed_transfers_per_second', 'speed_max_transfers_per_second') + '* (\n' + share('lanes', 'lanes_max') + ')\n)\n',

  prometheusRules+:: {
    groups+: [{
      name: 'plumbline-pcie.rules',
      rules: [{
        // An NVMe is one disk: with its name, so that Alertmanager can tell what follows from the link. An adapter
        // carries many, and slows them all alike.
        record: 'plumbline:pcie_link:ratio',
        expr: bandwidth + |||
          * on (%(address)s) group_left (device)
          max by (%(address)s, device) (
            topk by (%(address)s) (1, plumbline_pcie_device_info)
            and on (%(address)s)
            plumbline_pcie_info{device_type="nvme"}
          )
          or on (%(address)s)
        ||| % labels + bandwidth,
      }],
    }],
  },
}

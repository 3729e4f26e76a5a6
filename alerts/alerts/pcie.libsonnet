// The PCIe links that disks, host adapters and network cards hang on.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config) { link: self.address + ', kind, slot' },

  local errors = alerts.PlumblinePcieErrors,

  // A disk, host adapter or network card: whose ticket it is.
  local owners = [
    { layer: 'disk', kinds: 'nvme|hba' },
    { layer: 'network', kinds: 'nic' },
  ],

  local owned(expr, owner) = expr + |||
    * on (%(address)s) group_left (kind, slot)
    max by (%(link)s) (plumbline_pcie_info{kind=~"%(kinds)s"})
  ||| % (labels + owner),

  // "0000:c1:00.0, slot 3 (nvme nvme0n1) on stor01.example:10047": what hangs there is looked up, for there may be many.
  local place =
    '{{ $labels.address }}{{ with $labels.slot }}, slot {{ . }}{{ end }} ('
    + '{{ $labels.kind }}{{ range query (printf `plumbline_pcie_device_info{address=%q,' + promql.instanceFormat(config)
    + '}` $labels.address ' + promql.instanceArguments(config) + ') | sortByLabel "device" }} {{ .Labels.device }}{{ end }}'
    + ') on {{ $labels.instance }}',

  // `severity` is the alert's own label.
  local growing(kind) =
    '(sum by (%(address)s, error) (label_replace(increase(plumbline_pcie_aer_errors_total{severity=~"%(severity)s"}[%(window)s]), "error", "$1", "severity", "(.+)")) >= %(minimum)d)'
    % (labels + errors { severity: kind[0], minimum: kind[1] }),

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-pcie',
      rules: [
        alert.new(
          config,
          'PlumblinePcieLinkDegraded',
          owned('(plumbline:pcie_link:ratio < 1)\n', owner),
          { layer: owner.layer, signal: 'health' },
          'A PCIe link is slower than both ends support.',
          'The link of ' + place + ' runs at {{ $value | humanizePercentage }} of the bandwidth that both the device and the port above it support. A link trains down when contact is bad: check the seat, the riser, the cable and the slot.',
        )
        for owner in owners
      ] + [
        alert.new(
          config,
          'PlumblinePcieErrors',
          owned('(\n  ' + std.join('\n  or\n  ', std.map(growing, errors.minimum)) + '\n)\n', owner),
          // Retries cost a link microseconds: no reason to silence what stands above.
          { layer: owner.layer, signal: 'health' },
          'A PCIe link reports errors.',
          place + ': {{ printf "%%.0f" $value }} more errors of kind {{ $labels.error }} within %s. Corrected errors cost a retransmission; others lose data or reset the device. Check the seat, the riser, the cable and the device.' % errors.window,
        )
        for owner in owners
      ],
    }],
  },
}

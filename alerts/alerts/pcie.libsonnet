// The PCIe links that disks, host adapters and network cards hang on.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config) { link: self.address + ', device_type, physical_slot' },

  local errors = alerts.PlumblinePcieErrors,

  // A disk, host adapter or network card: whose ticket it is.
  local owners = [
    { layer: 'disk', kinds: 'nvme|hba' },
    { layer: 'network', kinds: 'nic' },
  ],

  local owned(expr, owner) = expr + |||
    * on (%(address)s) group_left (device_type, physical_slot)
    max by (%(link)s) (plumbline_pcie_info{device_type=~"%(kinds)s"})
  ||| % (labels + owner),

  // "0000:c1:00.0, slot 3 (nvme nvme0n1) on stor01.example:10047": what hangs there is looked up, for there may be many.
  local place =
    '{{ $labels.pci_address }}{{ with $labels.physical_slot }}, slot {{ . }}{{ end }} ('
    + '{{ $labels.device_type }}{{ range query (printf `plumbline_pcie_device_info{pci_address=%q,' + promql.instanceFormat(config)
    + '}` $labels.pci_address ' + promql.instanceArguments(config) + ') | sortByLabel "device" }} {{ .Labels.device }}{{ end }}'
    + ') on {{ $labels.instance }}',

  local growing(kind) =
    '(sum by (%(address)s, aer_severity) (increase(plumbline_pcie_aer_errors_total{aer_severity=~"%(severity)s"}[%(window)s])) >= %(minimum)d)'
    % (labels + errors { severity: kind[0], minimum: kind[1] }),

  _firstSteps+:: {
    PlumblinePcieLinkDegraded: first.check + ' shows link and slot',
    PlumblinePcieErrors: first.on('dmesg -T') + ': which error, which end?',
  },

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
          place + ': {{ printf "%%.0f" $value }} more error%s of kind {{ $labels.aer_severity }} within %s. Corrected errors cost a retransmission; others lose data or reset the device. Check the seat, the riser, the cable and the device.' % [promql.plural, errors.window],
        )
        for owner in owners
      ],
    }],
  },
}

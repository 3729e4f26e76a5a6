// Loss on the way in: at the card, and in the kernel's receive path behind it.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local network(signal) = { layer: 'network', signal: signal },

  local lowestOnly = promql.lowestOnly(config),

  // The share is the value, because it fits every speed; the count keeps idle links quiet.
  local drops(selector, tunables) = |||
    (
      sum by (%(device)s) (rate(plumbline_nic_drops_total{%(selector)s}[%(window)s]))
      /
      sum by (%(device)s) (rate(plumbline_nic_packets_total[%(window)s]))
      > %(share)g
    )
    and on (%(device)s)
    (sum by (%(device)s) (increase(plumbline_nic_drops_total{%(selector)s}[%(window)s])) >= %(minimumDrops)d)
  ||| % (labels + tunables { selector: selector }) + lowestOnly,

  // Too small only where it hurts: a ring below its maximum that loses nothing is well as it is.
  local ringSmall = alerts.PlumblineNicRingSmall,
  local smallRing = |||
    (
      max by (%(interface)s) (plumbline_nic_ring_entries{ring="receive"})
      /
      max by (%(interface)s) (plumbline_nic_ring_entries_max{ring="receive"})
      < %(belowShare)g
    )
    and on (%(interface)s)
    (
  ||| % (labels + ringSmall)
  + drops('cause="ring",direction="receive"', ringSmall)
  + ')\n',

  local errors = alerts.PlumblineNicErrors,
  local irqs = alerts.PlumblineNicIrqsOnOneCpu,
  local retransmits = alerts.PlumblineTcpRetransmits,
  local listen = alerts.PlumblineTcpListenOverflow,

  // With the limit that struck, where one of the two alone is enough to alert; else without.
  local squeeze = alerts.PlumblineSoftnetTimeSqueeze,
  local backlog = alerts.PlumblineSoftnetBacklogOverflow,
  local pause = alerts.PlumblineNicPauseStorm,

  _firstSteps+:: {
    PlumblineNicRingDrops: first.nic + ': ring, interrupts, pause frames',
    PlumblineNicRingSmall: first.on('ethtool -g {{ $labels.device }}') + ' shows the maximum',
    PlumblineNicFifoDrops: first.on('ethtool -S {{ $labels.device }}') + ', then the PCIe link of the card',
    PlumblineNicErrors: first.nic + ', then the cable and the transceiver',
    PlumblineNicPauseStorm: first.on('ethtool -S {{ $labels.device }}') + '; who sends them?',
    PlumblineNicIrqsOnOneCpu: first.on('systemctl is-active irqbalance'),
    PlumblineSoftnetTimeSqueeze: first.on('cat /proc/net/softnet_stat') + ': one CPU or all?',
    PlumblineSoftnetBacklogOverflow: first.on('cat /proc/net/softnet_stat') + ': one CPU or all?',
    PlumblineTcpRetransmits: first.on('ss -tin') + ': which peers?',
    PlumblineTcpListenOverflow: first.on('ss -tln') + ': which socket has Recv-Q near Send-Q?',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-network',
      rules: [
        alert.new(
          config,
          'PlumblineNicRingDrops',
          drops('cause="ring"', alerts.PlumblineNicRingDrops),
          network('loss'),
          'A network interface drops packets for lack of receive descriptors.',
          '{{ $labels.device }} on {{ $labels.instance }} drops {{ $value | humanizePercentage }} of its {{ $labels.direction }} packets because its ring is full: the host does not empty it fast enough. Peers retransmit, which shows as latency in every layer above.',
        ),
        alert.new(
          config,
          'PlumblineNicRingSmall',
          smallRing,
          network('loss'),
          'A network interface drops packets although its receive ring could be larger.',
          'The receive ring of {{ $labels.device }} on {{ $labels.instance }} is set to {{ $value | humanizePercentage }} of its maximum, and packets are lost because it is full. First make sure that its interrupts are spread over several CPUs, then enlarge the ring.',
        ),
        alert.new(
          config,
          'PlumblineNicFifoDrops',
          drops('cause="fifo"', alerts.PlumblineNicFifoDrops),
          network('loss'),
          'A network interface drops packets in its own buffer.',
          '{{ $labels.device }} on {{ $labels.instance }} drops {{ $value | humanizePercentage }} of its {{ $labels.direction }} packets in the buffer of the card: the bus or the memory behind it is too slow. Larger rings do not help.',
        ),
        alert.new(
          config,
          'PlumblineNicErrors',
          |||
            (
              sum by (%(device)s, cause) (rate(plumbline_nic_errors_total[%(window)s]))
              / on (%(device)s) group_left ()
              sum by (%(device)s) (rate(plumbline_nic_packets_total[%(window)s]))
              > %(share)g
            )
            and on (%(device)s, cause)
            (sum by (%(device)s, cause) (increase(plumbline_nic_errors_total[%(window)s])) >= %(minimumErrors)d)
          ||| % (labels + errors) + lowestOnly,
          network('error'),
          'A network link damages frames.',
          '{{ $labels.device }} on {{ $labels.instance }}: {{ $value | humanizePercentage }} of its {{ $labels.direction }} frames are bad (cause {{ $labels.cause }}). For crc and frame suspect the cable, the transceiver or the port at either end; for length a peer with a larger MTU.' + promql.switchPort(config),
        ),
        alert.new(
          config,
          'PlumblineNicPauseStorm',
          |||
            sum by (%(device)s) (rate(plumbline_nic_pause_frames_total[%(window)s])) > %(framesPerSecond)d
          ||| % (labels + pause) + lowestOnly,
          network('saturation'),
          'Pause frames keep stopping a network link.',
          '{{ $labels.device }} on {{ $labels.instance }}: {{ printf "%.0f" $value }} pause frames a second, direction {{ $labels.direction }}. No packet is dropped, but the link is idle for part of the time. {{ if eq $labels.direction "transmit" }}This host sends them: it is too slow{{ else }}The peer or the switch sends them: it is too slow{{ end }}.' + promql.switchPort(config),
        ),
        alert.new(
          config,
          'PlumblineSoftnetTimeSqueeze',
          |||
            count by (%(instance)s, limit) (
              (
                rate(plumbline_softnet_time_squeezes_attributed_total[%(window)s]) > %(squeezesPerSecond)d
                or on (%(instance)s)
                rate(plumbline_softnet_time_squeezes_total[%(window)s]) > %(squeezesPerSecond)d
              )
              > on (%(instance)s, cpu) group_left ()
              %(perPacket)g * rate(plumbline_softnet_packets_processed_total[%(window)s])
            )
          ||| % (labels + squeeze),
          network('saturation'),
          'Packet processing keeps running out of its budget.',
          'On {{ $labels.instance }}, packets wait on {{ $value }} CPU' + promql.plural + ' because receive rounds use up {{ if eq $labels.limit "budget" }}their budget of packets (net.core.netdev_budget){{ else if eq $labels.limit "time" }}their time (net.core.netdev_budget_usecs){{ else }}their budget of packets or time{{ end }}. If this continues, the ring drops packets.',
        ),
        alert.new(
          config,
          'PlumblineSoftnetBacklogOverflow',
          |||
            sum by (%(instance)s) (increase(plumbline_softnet_packets_dropped_total[%(window)s])) >= %(minimumDrops)d
          ||| % (labels + backlog),
          network('loss'),
          'The kernel drops packets because a backlog queue is full.',
          'The kernel on {{ $labels.instance }} dropped {{ printf "%%.0f" $value }} packets within %s because the backlog queue of a CPU was full (net.core.netdev_max_backlog).' % backlog.window,
        ),
        alert.new(
          config,
          'PlumblineNicIrqsOnOneCpu',
          // One vector alone can't be spread, and one CPU alone leaves no choice.
          |||
            max by (%(interface)s) (plumbline_nic_irq_share_max_ratio) > %(share)g
            and on (%(interface)s)
            max by (%(interface)s) (plumbline_nic_irq_active_vectors) > 1
            and on (%(interface)s)
            sum by (%(interface)s) (rate(plumbline_nic_packets_total[%(window)s])) > %(packetsPerSecond)d
            and on (%(instance)s)
            count by (%(instance)s) (plumbline_softnet_packets_processed_total) > 1
          ||| % (labels + irqs) + lowestOnly + promql.storageOnly(config),
          network('health'),
          'One CPU serves all interrupts of a network interface.',
          '{{ $value | humanizePercentage }} of the interrupts of {{ $labels.device }} on {{ $labels.instance }} go to one CPU, although the interface has several vectors. That CPU limits the interface; time squeezes and ring drops follow.',
        ),
        alert.new(
          config,
          'PlumblineTcpRetransmits',
          |||
            (
              sum by (%(instance)s) (rate(plumbline_tcp_segments_retransmitted_total[%(window)s]))
              /
              sum by (%(instance)s) (rate(plumbline_tcp_segments_total{direction="transmit"}[%(window)s]))
              > %(share)g
            )
            and on (%(instance)s)
            (sum by (%(instance)s) (increase(plumbline_tcp_segments_retransmitted_total[%(window)s])) >= %(minimumSegments)d)
          ||| % (labels + retransmits),
          network('loss'),
          'TCP retransmits many segments.',
          '{{ $labels.instance }} retransmits {{ $value | humanizePercentage }} of its TCP segments: packets are lost on the way to its peers or at the peers. If no interface alert shows where, check the switches and the receivers.',
        ),
        alert.new(
          config,
          'PlumblineTcpListenOverflow',
          |||
            sum by (%(instance)s) (increase(plumbline_tcp_listen_overflows_total[%(window)s])) >= %(minimumOverflows)d
          ||| % (labels + listen),
          network('loss'),
          'New TCP connections are refused because an accept queue is full.',
          '{{ $labels.instance }} refused {{ printf "%%.0f" $value }} connections within %s: a daemon does not accept them fast enough, or its queue is too short (net.core.somaxconn, ms_tcp_listen_backlog).' % listen.window,
        ),
      ],
    }],
  },
}

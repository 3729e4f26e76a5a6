// Loss on the way in: at the card, and in the kernel's receive path behind it.
local alert = import '../lib/alert.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local labels = promql.labels(config),
  local network(signal) = { layer: 'network', signal: signal },

  // A bond repeats its members' counters; only the members are judged.
  local membersOnly = |||
    unless on (%(instance)s, device)
    label_replace(plumbline_nic_info{master!=""}, "device", "$1", "master", "(.+)")
  ||| % labels,

  // The share is the value, because it fits every speed; the count keeps idle links quiet.
  local drops(cause, tunables) = |||
    (
      sum by (%(device)s) (rate(plumbline_nic_drops_total{cause="%(cause)s"}[%(window)s]))
      /
      sum by (%(device)s) (rate(plumbline_nic_packets_total[%(window)s]))
      > %(share)g
    )
    and on (%(device)s)
    (sum by (%(device)s) (increase(plumbline_nic_drops_total{cause="%(cause)s"}[%(window)s])) >= %(minimumDrops)d)
  ||| % (labels + tunables { cause: cause }) + membersOnly,

  local squeeze = alerts.PlumblineSoftnetTimeSqueeze,
  local backlog = alerts.PlumblineSoftnetBacklogOverflow,
  local pause = alerts.PlumblineNicPauseStorm,

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-network',
      rules: [
        alert.new(
          config,
          'PlumblineNicRingDrops',
          drops('ring', alerts.PlumblineNicRingDrops),
          network('loss'),
          'A network interface drops packets for lack of receive descriptors.',
          '{{ $labels.device }} on {{ $labels.instance }} drops {{ $value | humanizePercentage }} of its {{ $labels.direction }} packets because its ring is full: the host does not empty it fast enough. Peers retransmit, which shows as latency in every layer above.',
        ),
        alert.new(
          config,
          'PlumblineNicFifoDrops',
          drops('fifo', alerts.PlumblineNicFifoDrops),
          network('loss'),
          'A network interface drops packets in its own buffer.',
          '{{ $labels.device }} on {{ $labels.instance }} drops {{ $value | humanizePercentage }} of its {{ $labels.direction }} packets in the buffer of the card: the bus or the memory behind it is too slow, bigger rings do not help.',
        ),
        alert.new(
          config,
          'PlumblineNicPauseStorm',
          |||
            sum by (%(device)s) (rate(plumbline_nic_pause_frames_total[%(window)s])) > %(framesPerSecond)d
          ||| % (labels + pause) + membersOnly,
          network('saturation'),
          'Pause frames keep stopping a network link.',
          '{{ $labels.device }} on {{ $labels.instance }}: {{ printf "%.0f" $value }} pause frames a second, direction {{ $labels.direction }}. Nothing is dropped, but the link stands still for part of the time; transmit means this host is too slow, receive that its peer or the switch is.',
        ),
        alert.new(
          config,
          'PlumblineSoftnetTimeSqueeze',
          |||
            count by (%(instance)s) (
              rate(plumbline_softnet_time_squeeze_total[%(window)s]) > %(squeezesPerSecond)d
              and
              rate(plumbline_softnet_time_squeeze_total[%(window)s])
              /
              rate(plumbline_softnet_processed_total[%(window)s])
              > %(perPacket)g
            )
          ||| % (labels + squeeze),
          network('saturation'),
          'Packet processing keeps running out of its budget.',
          'On {{ $labels.instance }}, {{ $value }} of its CPUs leave packets waiting because receive rounds use up their budget of packets or time; the next step is loss in the ring.',
        ),
        alert.new(
          config,
          'PlumblineSoftnetBacklogOverflow',
          |||
            sum by (%(instance)s) (increase(plumbline_softnet_dropped_total[%(window)s])) >= %(minimumDrops)d
          ||| % (labels + backlog),
          network('loss'),
          'The kernel drops packets because a backlog queue is full.',
          'The kernel on {{ $labels.instance }} dropped {{ printf "%%.0f" $value }} packets within %s because the backlog queue of a CPU was full (net.core.netdev_max_backlog).' % backlog.window,
        ),
      ],
    }],
  },
}

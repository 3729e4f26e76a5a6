// Servers of distributed file systems: bricks, peers and heals of GlusterFS; chunks of MooseFS.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';

{
  local config = $._config,
  local alerts = config.alerts,
  local clusters = promql.clusterLabels(config),
  local labels = {
    brick: promql.join(clusters + ['volume', 'subvolume', 'brick']),
    subvolume: promql.join(clusters + ['volume', 'subvolume']),
    volume: promql.join(clusters + ['volume']),
    peer: promql.join(clusters + ['peer']),
    instance: promql.join(config.instanceLabels),
  },
  local ofCluster = '{{ with $labels.cluster }} in cluster {{ . }}{{ end }}',
  local broken = { layer: 'filesystem', signal: 'error' },
  local health = { layer: 'filesystem', signal: 'health' },

  local bricks(tunables) =
    if tunables.needed then alert.fromTunables(
      tunables,
      'PlumblineGlusterBrickDown',
      |||
        count by (%(subvolume)s) (max by (%(brick)s) (plumbline_gluster_brick_up) == 0)
        > on (%(volume)s) group_left ()
        max by (%(volume)s) (plumbline_gluster_subvolume_bricks - plumbline_gluster_subvolume_bricks_needed)
      ||| % labels,
      broken,
      'A GlusterFS volume has lost more bricks than it can spare.',
      '{{ $value }} brick%s of part {{ $labels.subvolume }} of volume {{ $labels.volume }}%s down: too few are left for clients to write there, or some files cannot be reached.' % [promql.plural, ofCluster + promql.number(' is', ' are')],
    ) else alert.fromTunables(
      tunables,
      'PlumblineGlusterBrickDown',
      'plumbline_gluster_brick_up == 0',
      broken,
      'A GlusterFS brick is down.',
      'Brick {{ $labels.brick }} of volume {{ $labels.volume }} on {{ $labels.instance }} is down: its process has ended, or its disk has failed. What is written meanwhile has to be healed.',
    ),

  local peers(tunables) =
    if tunables.quorum then alert.fromTunables(
      tunables,
      'PlumblineGlusterPeerLost',
      'max by (%(volume)s) (plumbline_gluster_server_quorum) == 0' % labels,
      broken,
      'A GlusterFS volume has lost its server quorum.',
      'No server of volume {{ $labels.volume }}' + ofCluster + ' sees enough others: they have stopped their bricks, and the volume cannot be used.',
    ) else alert.fromTunables(
      tunables,
      'PlumblineGlusterPeerLost',
      'max by (%(peer)s) (plumbline_gluster_peer_connected) == 0' % labels,
      health,
      'A GlusterFS server is not connected to the others.',
      'No server of the GlusterFS pool' + ofCluster + ' is connected to glusterd of {{ $labels.peer }}: the host is off or cut off, or glusterd does not run. Its bricks may still serve.',
    ),

  local heal = alerts.PlumblineGlusterHealStalled,
  local pending(offset) = 'sum by (%s) (max by (%s) (plumbline_gluster_heal_pending_entries%s))' % [labels.volume, promql.join(clusters + ['volume', 'brick']), offset],

  local rules = std.map(bricks, alerts.PlumblineGlusterBrickDown.severities) + std.map(peers, alerts.PlumblineGlusterPeerLost.severities) + [
    alert.new(
      config,
      'PlumblineGlusterHealStalled',
      // With a brick that is down nothing can be healed.
      |||
        (
          %(now)s
          >=
          %(before)s
        ) > 0
        unless on (%(volume)s)
        plumbline_gluster_brick_up == 0
      ||| % (labels { now: pending(''), before: pending(' offset ' + heal.compared) }),
      health,
      'Files of a GlusterFS volume stay unhealed.',
      'Bricks of volume {{ $labels.volume }}' + ofCluster + ' have {{ $value }} ' + promql.number('entry', 'entries') + ' to bring to others, and the number does not go down: the copies differ.',
    ),
    alert.new(
      config,
      'PlumblineMoosefsChunksMissing',
      'max by (%(instance)s) (plumbline_moosefs_chunks{state="missing"}) > 0' % labels,
      broken,
      'Chunks of MooseFS have no valid copy.',
      '{{ $value }} chunk%s of the MooseFS master on {{ $labels.instance }} %s no valid copy on a connected chunkserver: files cannot be read.' % [promql.plural, promql.number('has', 'have')],
    ),
    alert.new(
      config,
      'PlumblineMoosefsRedundancyLow',
      |||
        max by (%(instance)s) (plumbline_moosefs_chunks{state="endangered"}) > 0
        or
        max by (%(instance)s, chunkserver) (plumbline_moosefs_chunkserver_connected) == 0
      ||| % labels,
      broken,
      'MooseFS lacks copies or a chunkserver.',
      '{{ with $labels.chunkserver }}Chunkserver {{ . }} is not connected to the MooseFS master on {{ $labels.instance }}.'
      + '{{ else }}{{ $value }} chunk%s of the MooseFS master on {{ $labels.instance }} %s a single valid copy, and more are wanted: the next failure loses data.{{ end }}' % [promql.plural, promql.number('has', 'have')],
    ),
  ],

  _firstSteps+:: {
    PlumblineGlusterBrickDown: '`gluster volume status {{ $labels.volume }}` on a server of the pool: which brick has no process? Then its log in /var/log/glusterfs/bricks, and `dmesg -T`',
    PlumblineGlusterPeerLost: '`gluster pool list` on a server of the pool: who is Disconnected? Then `systemctl status glusterd` there',
    PlumblineGlusterHealStalled: '`gluster volume heal {{ $labels.volume }} info summary` on a server of the pool: is there a split-brain?',
    PlumblineMoosefsChunksMissing: first.on('mfscli -SMF -SCS') + ': which files, and which chunkservers are gone?',
    PlumblineMoosefsRedundancyLow: first.on('mfscli -SCS -SHD') + ': which chunkserver is gone, which disk is damaged?',
  },

  prometheusAlerts+:: {
    // Beside the mounts: a group of its own would be one more than Mimir takes.
    groups: [group + if group.name == 'plumbline-mount' then { rules+: rules } else {} for group in super.groups],
  },
}

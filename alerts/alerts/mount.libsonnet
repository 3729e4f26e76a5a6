// File systems behind a server: mounted, and dead; Lustre's targets.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local promql = import '../lib/promql.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,

  // " (EVICTED)"
  local state = '{{ with query (printf `plumbline_lustre_import_info{import=%q,' + promql.instanceFormat(config) + '}` $labels.import '
                + promql.instanceArguments(config) + ') }} ({{ (first .).Labels.state }}){{ end }}',

  _firstSteps+:: {
    PlumblineMountDead: '`ps -eo pid,stat,wchan:32,etime,args` (is a FUSE server in state T or D?) and ' + first.on('dmesg -T') + '; do not run ls or df there, they would hang',
    PlumblineLustreImportDown: first.on('lctl get_param *.{{ $labels.import }}.import') + ': which address does it try? Then that server, and the network to it.',
    PlumblineLustreUnhealthy: first.on('dmesg -T | grep Lustre') + ' names the target.',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'plumbline-mount',
      rules: [
        alert.new(
          config,
          'PlumblineMountDead',
          'plumbline_mount_up == 0',
          { layer: 'filesystem', signal: 'health' },
          'A mounted file system does not answer.',
          '{{ $labels.mountpoint }} ({{ $labels.filesystem }}) on {{ $labels.instance }} does not answer: its server hangs, is down or cannot be reached, and every program that uses it hangs.'
          // Only a mount of Ceph waits for what is below it.
          + '\nSuspected: {{ if eq $labels.filesystem "ceph" }}' + std.strReplace(suspects.cause(config), '\nSuspected: ', '')
          + '{{ else }}its server, or the network to it.{{ end }}',
        ),
        alert.new(
          config,
          'PlumblineLustreImportDown',
          'plumbline_lustre_import_up == 0',
          { layer: 'filesystem', signal: 'error' },
          'A host is not connected to a target of Lustre.',
          '{{ $labels.instance }} is not connected to {{ $labels.target }}' + state + ': programs there that use its files wait or get errors.',
        ),
        alert.new(
          config,
          'PlumblineLustreUnhealthy',
          'plumbline_lustre_healthy == 0',
          { layer: 'filesystem', signal: 'error' },
          'A Lustre server is not healthy.',
          'Lustre on {{ $labels.instance }} says that it is not healthy: a target cannot be written to, its threads get stuck, or it met a bug.',
        ),
      ],
    }],
  },
}

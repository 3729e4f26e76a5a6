// File systems behind a server: mounted, and dead.
local alert = import '../lib/alert.libsonnet';
local first = import '../lib/first_steps.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,

  _firstSteps+:: {
    PlumblineMountDead: '`ps -eo pid,stat,wchan:32,etime,args` (is a FUSE server in state T or D?) and ' + first.on('dmesg -T') + '; do not run ls or df there, they would hang',
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
      ],
    }],
  },
}

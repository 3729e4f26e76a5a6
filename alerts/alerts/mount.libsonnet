// File systems behind a server: mounted, and dead.
local alert = import '../lib/alert.libsonnet';
local suspects = import '../lib/suspects.libsonnet';

{
  local config = $._config,

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
          // Only a mount of Ceph waits for what is below it.
          '{{ if eq $labels.filesystem "ceph" }}' + suspects.cause(config) + '{{ end }}'
          + '{{ $labels.mountpoint }} ({{ $labels.filesystem }}) on {{ $labels.instance }} does not answer: its server is down or unreachable, and every program that uses it hangs.',
        ),
      ],
    }],
  },
}

// What first steps have in common: what to do first, for who reads nothing but the notification. They stand with their alerts,
// in `_firstSteps`, and are the last line of every description: a sentence that begins with the command, if there is one; the
// runbook has the rest. `plumbline` is called as the runbook's first block says for each installation.
{
  local on = self.on,
  on(command):: '`%s` on {{ $labels.instance }}' % command,
  disk:: on('plumbline disk {{ $labels.device }}'),
  nic:: on('plumbline nic {{ $labels.device }}'),
  check:: on('plumbline check'),
  probes:: on('plumbline probe list'),
  journal:: 'the log of the daemon on {{ $labels.instance }} (`journalctl -u plumbline`)',
  query(expr):: '`%s` in Prometheus' % expr,
  osd:: '{{ $labels.ceph_daemon }}',
  // Of the OSD's disk, where a daemon on its host knows it.
  osdDisk:: '{{ with query (printf "plumbline:osd_disk:info{ceph_daemon=%q,cluster=%q}" $labels.ceph_daemon $labels.cluster) }}`plumbline disk {{ (. | sortByLabel "device" | first).Labels.device }}`{{ else }}`ceph device ls-by-daemon {{ $labels.ceph_daemon }}`{{ end }}',
  // Where a probe's errors come from, by its layer.
  below:: '{{ if eq $labels.layer "disk" }}' + on('dmesg -T') + '{{ else if eq $labels.layer "object" }}the log of the gateway{{ else }}`ceph -s`{{ end }}',
}

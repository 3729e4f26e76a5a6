// An empty answer means that all is well only where somebody looked. What proves that, and the words where it is missing.
// What reads recorded series or alerts gets the words by itself (panels.libsonnet): no page has to think of it.
local rules = 'ALERTS{alertname="PlumblineWatchdog"}';
local daemons = 'plumbline_build_info{cluster=~"$cluster"}';
local manager = 'ceph_health_status{cluster=~"$cluster"}';

// Not std.findSubstr: it takes a minute for all pages, because it is not built in.
local reads(expr, names) = std.length([name for name in names if std.strReplace(expr, name, '') != expr]) > 0;
local recorded(expr) = reads(expr, ['plumbline:', 'ALERTS']);

{
  // What a tile has where the rules are not evaluated: no figure is as low. Grafana's key of it in a mapping is `key`.
  code: -1e99,
  key: '-1e+99',
  rules: 'rules not loaded',
  ceph: 'no data from Ceph',
  daemon: 'no daemon is scraped',

  // Counts that are 0 where nothing is counted: as the rules prove, or a series of what is looked at (`of`).
  zero(of=rules):: '0 * count(%s)' % of,
  counted(expr, of=rules):: 'count(%s) or %s' % [expr, self.zero(of)],

  // A tile's query. `label`: the one that the tile shows instead of a figure.
  tile(expr, label='')::
    local missing = 'vector(%g) unless on () %s' % [self.code, rules];
    local named = if label == '' then '(%s)' % missing else 'label_replace(%s, "%s", "%s", "", "")' % [missing, label, self.rules];
    if recorded(expr) then std.rstripChars(expr, '\n') + '\nor on ()\n' + named else expr,

  // A row with the words under `label`, for a table of these queries; null where nothing could prove anything.
  row(exprs, label)::
    local of(proof, words) = 'label_replace(vector(0) unless on () %s, "%s", "%s", "", "")' % [proof, label, words];
    local all = std.join(' ', exprs);
    // Of what is Ceph's alone: alerts, disks and versions are there without it.
    local others = ['ALERTS', 'plumbline_build_info', 'plumbline_disk_', 'plumbline_finding'];
    local ofCeph = if reads(all, ['ceph_', 'plumbline:osd', 'plumbline:pool', 'plumbline:pg_', 'plumbline:capacity_']) && !reads(all, others)
    then ' or on () ' + of(manager, self.ceph) else '';
    if recorded(all) then of(rules, self.rules) + ofCeph
    else if reads(all, ['plumbline_']) then of(daemons, self.daemon)
    else if reads(all, ['ceph_']) then of(manager, self.ceph),
}

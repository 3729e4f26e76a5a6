// Every page: its uid (never changed: bookmarks, alerts and other pages link it), its title, the one question it answers,
// and its level: 0 all clusters, 1 one layer or question, 2 one host, 3 one thing. `up` are the pages one comes from.
local page(uid, title, level, question, up=[]) = {
  uid: 'plumbline-' + uid,
  title: 'Plumbline / ' + title,
  short: title,
  level: level,
  question: question,
  up: up,
};

{
  overview: page('overview', 'SLA overview', 0, 'Does every layer of every cluster perform as on the day it was accepted, and if not, which one is to blame?'),

  network: page('network', 'Network', 1, 'Does the network lose or delay what storage sends, on which host and port, and why?', ['overview']),
  disks: page('disks', 'Disks', 1, 'Which disk is slower than its peers or than it was, and which will not last?', ['overview']),
  osds: page('osds', 'OSDs', 1, 'Which OSD is slow, and is it its disk, its queue, its host or a peer?', ['overview']),
  pools: page('pools', 'Pools and RADOS', 1, 'Does RADOS serve each pool as accepted, and what is being repaired?', ['overview']),
  rbd: page('rbd', 'RBD and clients', 1, 'What do clients get, from each vantage point, compared with what was accepted?', ['overview']),
  gateways: page('gateways', 'Gateways', 1, 'Are gateways and metadata servers as fast as their equals and as they were?', ['overview']),
  probes: page('probes', 'Probes', 1, 'Do the probes run, what do they cost, and what did they measure over time?', ['overview']),
  tuning: page('tuning', 'Tuning compliance', 1, 'Which documented advice is not followed, where, and which peers differ?', ['overview']),
  budget: page('budget', 'Latency budget', 1, 'Where does the time of one operation go, layer by layer, compared with the documented stack?', ['overview']),
  capacity: page('capacity', 'Capacity review', 1, 'When is it full, what survives losing the largest host, how much headroom is left?', ['overview']),

  node: page('node', 'Node', 2, 'Does this node still perform as on the day it was accepted, and what on it stands out?', ['overview']),

  disk: page('disk', 'Disk', 3, 'What does this one disk do, who uses it, and is it slower than its peers or its past?', ['disks', 'node']),
  nic: page('nic', 'NIC', 3, 'What does this one port lose, why, and how is it set?', ['network', 'node']),
  osd: page('osd', 'OSD', 3, 'Where does the time of this one OSD go, and who else is affected?', ['osds', 'node']),
}

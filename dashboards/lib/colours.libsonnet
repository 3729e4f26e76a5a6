// What means the same looks the same on every page. All are told apart by people with the common colour blindnesses,
// and a colour never stands alone: text, legend or position say it too.
{
  read: '#3274D9',
  write: '#E0752D',
  good: '#37872D',
  warning: '#E0B400',
  bad: '#C4162A',
  neutral: '#5A6570',
  baseline: '#8F8F8F',

  // The layers from the bottom up.
  layer: {
    network: '#1F60C4',
    disk: '#8F3BB8',
    osd: '#E0752D',
    rados: '#37872D',
    rbd: '#00A3A3',
    filesystem: '#B877D9',
    object: '#C15C17',
    client: '#B0548D',
  },

  // Stages of one operation, from the wire up; of each layer the shades are of one colour.
  stage: {
    network: '#1F60C4',
    ack: '#8AB8FF',
    device: '#8F3BB8',
    store: '#E0752D',
    kv: '#FFB357',
    commit: '#E0752D',
    queue: '#C4162A',
    prepare: '#E0B400',
    osd: '#E0B400',
    process: '#E0B400',
    peers: '#37872D',
    replica: '#37872D',
    code: '#5A6570',
    other: '#5A6570',
    client: '#B0548D',
  },
}

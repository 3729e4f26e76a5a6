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
}

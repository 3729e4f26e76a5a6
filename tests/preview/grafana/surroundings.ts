// What Grafana's code expects of a browser. Imported first.

Object.assign(globalThis, {
  window: globalThis,
  navigator: { language: 'en-US', languages: ['en-US'], userAgent: '' },
  location: { href: '' },
});

// Perfetto's trace processor outside a browser: node worker.cjs PAGE ASKED ANSWERED feeds it the file of requests
// ASKED, and writes what it replies to ANSWERED. PAGE is the directory with engine_bundle.js.
const fs = require('fs');
const path = require('path');
const [page, asked, answered] = process.argv.slice(2);
const out = fs.openSync(answered, 'w');
const from_page = (url) => fs.readFileSync(path.join(page, path.basename(String(url))));

// The engine takes itself to be in a worker, where it finds its WebAssembly by a request.
globalThis.self = globalThis;
globalThis.location = { href: 'file://' + page + '/engine_bundle.js' };
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.XMLHttpRequest = class {
  open(_, url) {
    this.url = url;
  }
  setRequestHeader() {}
  send() {
    const bytes = from_page(this.url);
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.onload?.();
  }
};
globalThis.fetch = async (url) =>
  new Response(from_page(url), { headers: { 'content-type': 'application/wasm' } });
const { process: saved } = globalThis;
globalThis.process = undefined;
(0, eval)(fs.readFileSync(path.join(page, 'engine_bundle.js'), 'utf8'));
globalThis.process = saved;

const port = {
  onmessage: null,
  postMessage: (reply) => fs.writeSync(out, reply),
};
self.onmessage({ data: port });
const CHUNK = 1 << 24;
const feed = (tries) => {
  const requests = new Uint8Array(fs.readFileSync(asked));
  try {
    for (let at = 0; at < requests.length; at += CHUNK) {
      port.onmessage({ data: requests.subarray(at, Math.min(requests.length, at + CHUNK)) });
    }
  } catch (error) {
    // It is not ready before its WebAssembly is compiled, and takes nothing until then.
    if (tries === 0) throw error;
    setTimeout(() => feed(tries - 1), 100);
  }
};
setTimeout(() => feed(100), 500);

/** A collector that takes whatever is sent and keeps nothing. */

export {};

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    await request.arrayBuffer();
    return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } });
  },
});
console.log(`collector listening on http://127.0.0.1:${server.port}`);

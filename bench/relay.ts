/** The yardstick: the barest relay that Bun can do, native body pipe and nothing else, compiled like the product. */

const upstream = process.argv[2] ?? '';

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const path = request.url.slice(request.url.indexOf('/', 8));
    if (path === '/healthz') return new Response('ok');
    const answer = await fetch(upstream + path, {
      method: request.method,
      headers: { 'content-type': 'application/json' },
      body: await request.arrayBuffer(),
      signal: request.signal,
      decompress: false,
      timeout: false,
      redirect: 'manual',
    } as RequestInit);
    const type = answer.headers.get('content-type') ?? 'application/json';
    return new Response(answer.body, { status: answer.status, headers: { 'content-type': type } });
  },
});

console.log(`relay listening on http://127.0.0.1:${server.port}`);

export {};

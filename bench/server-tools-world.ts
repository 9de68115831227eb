/** A vendor, a search engine and an HTTP tool that answer at once, in a process of their own: `rounds-N` calls a tool N times. */

const encoder = new TextEncoder();
const STREAM = { 'content-type': 'text/event-stream' };
const chunk = (delta: object, finish: string | null) =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finish)}}]}\n\n`;
const DONE = 'data: [DONE]\n\n';

const ANSWER = encoder.encode(
  chunk({ role: 'assistant', content: 'It stands' }, null) +
    chunk({ content: ' at 41.5.' }, null) +
    chunk({}, 'stop') +
    DONE,
);

function callOf(round: number): Uint8Array {
  const call = {
    index: 0,
    id: `call_${round.toString().padStart(24, '0')}`,
    type: 'function',
    function: { name: 'stock_price', arguments: '{"symbol":"ACME"}' },
  };
  return encoder.encode(
    chunk({ role: 'assistant', content: null }, null) +
      chunk({ tool_calls: [call] }, null) +
      chunk({}, 'tool_calls') +
      DONE,
  );
}

const CALLS = Array.from({ length: 16 }, (_, round) => callOf(round));
const PRICE = '{"symbol":"ACME","price":41.5}';
const MODEL = /"model"\s*:\s*"rounds-(\d+)"/;

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (request.method === 'GET') {
      return new Response(PRICE, { headers: { 'content-type': 'application/json' } });
    }
    const body = await request.text();
    const rounds = Number(MODEL.exec(body)?.[1] ?? 0);
    // One result for each round that is over.
    const over = body.split('"role":"tool"').length - 1;
    return new Response(over < rounds ? CALLS[over] : ANSWER, { headers: STREAM });
  },
});

console.log(`world listening on http://127.0.0.1:${server.port}`);

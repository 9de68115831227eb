/** `bun bench/websocket.ts`: paced streams over WebSocket beside the same over SSE, and what idle sockets cost. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { idleSockets, pacedSockets } from './check-websocket.ts';
import { announcedPort, startChild, stopChildren } from './children.ts';

const HELP = `bun bench/websocket.ts [options]

  --streams N   paced streams at once (500)
  --rounds N    rounds of each wire, in turn (5)
  --idle N      idle sockets (2000)
  --json        the figures as JSON
`;

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '5' },
    idle: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const dir = mkdtempSync(join(tmpdir(), 'hopgate-bench-websocket-'));
try {
  const mock = startChild(['bun', new URL('mock-upstream.ts', import.meta.url).pathname], {
    logFile: join(dir, 'mock.log'),
    stdout: 'pipe',
  });
  const mockPort = await announcedPort(mock);
  const bench = { mockPort, mockPid: mock.pid, dir, say: () => {} };
  const options = { streams: Number(values.streams), rounds: Number(values.rounds) };
  const paced = {
    'same protocol': await pacedSockets(bench, 'openai-responses', options),
    'onto Chat': await pacedSockets(bench, 'openai-chat', options),
  };
  const idle = await idleSockets(bench, Number(values.idle));
  if (values.json) console.log(JSON.stringify({ ...options, paced, idle }));
  else {
    console.log('| paced streams, CPU an event | SSE | WebSocket | ratio |\n|---|--:|--:|--:|');
    for (const [name, { sse, websocket, ratio }] of Object.entries(paced)) {
      const costs = [sse, websocket].map((cost) => `${cost.toFixed(1)} µs`);
      console.log(
        `| ${options.streams} streams, ${name} | ${costs.join(' | ')} | ${ratio.toFixed(2)} |`,
      );
    }
    const { sockets, kilobytes, cpu } = idle;
    console.log(
      `\n${sockets} idle sockets: ${kilobytes.toFixed(1)} KB and ${cpu.toFixed(2)} µs of CPU a second each.`,
    );
  }
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}

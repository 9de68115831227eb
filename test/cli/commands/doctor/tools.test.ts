/** `hopgate doctor` tries MCP servers and HTTP tools, runs none of their tools, and never prints their keys. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createWorld, type World } from '../../world.ts';

let world: World;
const requests: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    requests.push(`${request.method} ${new URL(request.url).pathname}`);
    const status = { '/locked': 401, '/broken': 503 }[new URL(request.url).pathname] ?? 405;
    return new Response(null, { status });
  },
});
beforeEach(() => {
  world = createWorld();
  requests.length = 0;
});
afterEach(() => world.remove());

const SECRET = 'tool-secret-0123456789abcdef';
const EVERYTHING = join(
  import.meta.dir,
  '../../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
);

async function doctor(tools: object) {
  world.write(
    '.config/hopgate/hopgate.yaml',
    JSON.stringify({
      listen: '127.0.0.1:0',
      providers: {
        p: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1', models: ['m'] },
      },
      server_tools: tools,
    }),
  );
  const { out } = await world.run(['doctor', '--json', '--no-completion', '--timeout', '10']);
  const { findings } = JSON.parse(out) as {
    findings: { about: string; status: string; message: string }[];
  };
  expect(out).not.toContain(SECRET);
  return (about: string) => findings.find((found) => found.about === about);
}
const http = (url: string) => ({
  description: 'd',
  method: 'POST',
  url,
  headers: { authorization: `Bearer ${SECRET}` },
  schema: { type: 'object', properties: { city: { type: 'string' } } },
});

test('an MCP server that starts is counted with its tools, one that cannot says why', async () => {
  const found = await doctor({
    mcp: {
      good: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
      missing: { command: 'no-such-program-here' },
      dying: {
        command: process.execPath,
        args: ['-e', 'console.error("no licence"); process.exit(3)'],
        env: { KEY: SECRET },
      },
      nowhere: { url: 'http://127.0.0.1:1/mcp' },
    },
  });
  expect(found('mcp good')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^started, \d+ tools$/),
  });
  expect(found('mcp missing')).toMatchObject({ status: 'fail' });
  expect(found('mcp dying')).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('no licence'),
  });
  expect(found('mcp nowhere')).toMatchObject({ status: 'fail' });
}, 60_000);

test('an HTTP tool is reached without being run', async () => {
  const at = `http://127.0.0.1:${server.port}`;
  const found = await doctor({
    http: {
      fine: http(`${at}/v1/{city}?unit=c`),
      locked: http(`${at}/locked`),
      broken: http(`${at}/broken`),
      gone: http('http://127.0.0.1:1/x'),
    },
  });
  expect(found('tool fine')).toMatchObject({ status: 'ok' });
  expect(found('tool locked')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining('401'),
  });
  expect(found('tool broken')).toMatchObject({ status: 'warn' });
  expect(found('tool gone')).toMatchObject({ status: 'fail' });
  expect(requests.every((request) => request.startsWith('HEAD '))).toBe(true);
}, 60_000);

/** MCP servers: started on demand, restarted with pauses; tested in this process and with real servers. */

import { afterAll, describe, expect, test } from 'bun:test';
import { tmpdir } from 'node:os';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type {
  ServerTool,
  ToolContext,
  ToolError,
} from '../../../../../src/features/server-tools/tool.ts';
import { type Dial, openSession } from '../../../../../src/features/server-tools/tools/mcp/dial.ts';
import {
  type McpToolsServer,
  mcpTools,
} from '../../../../../src/features/server-tools/tools/mcp/index.ts';
import { until } from '../../../../support/until.ts';

const SERVER: McpToolsServer = {
  name: 'fake',
  command: 'unused',
  args: [],
  env: {},
  cwd: tmpdir(),
  headers: {},
  timeoutMs: 5000,
};
const signal = () => new AbortController().signal;
const context = (more: Partial<ToolContext> = {}): ToolContext => ({
  signal: signal(),
  callId: 'c',
  options: {},
  log: () => {},
  ...more,
});
const named = (tools: readonly ServerTool[], name: string) => {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined) throw new Error(`no ${name} among ${tools.map((t) => t.name)}`);
  return found;
};

/** A server in this process. Each dial makes a new one; `lives` holds all of them. */
function fake() {
  const lives: Server[] = [];
  const state = { names: ['echo', 'boom', 'die', 'slow'], refuse: false };
  const dial: Dial = async (options, listeners, abort) => {
    if (state.refuse) throw new Error('spawn ENOENT');
    const server = new Server(
      { name: 'fake', version: '1' },
      { capabilities: { tools: { listChanged: true } } },
    );
    lives.push(server);
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      // One tool per page.
      const at = Number(params?.cursor ?? 0);
      const name = state.names[at]!;
      const tool = { name, description: `${name}!`, inputSchema: { type: 'object' as const } };
      return { tools: [tool], ...(at + 1 < state.names.length ? { nextCursor: `${at + 1}` } : {}) };
    });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
      if (params.name === 'die') {
        await server.close();
        await Bun.sleep(10_000);
      }
      if (params.name === 'slow') await Bun.sleep(5000);
      if (params.name === 'boom')
        return { isError: true, content: [{ type: 'text', text: 'boom' }] };
      if (params.name !== 'echo') throw new Error('no such tool');
      return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] };
    });
    const [theirs, ours] = InMemoryTransport.createLinkedPair();
    await server.connect(theirs);
    return openSession(ours, options, listeners, abort);
  };
  return { dial, lives, state };
}

const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  await Promise.all(open.map((one) => one.close()));
});
function start(server: Partial<McpToolsServer>, dial?: Dial, startWaitMs?: number) {
  const events: string[] = [];
  const tools = mcpTools({
    servers: [{ ...SERVER, ...server }],
    version: '9',
    dial,
    startWaitMs,
    log: (event, { why }) => events.push(why === undefined ? event : `${event}: ${why}`),
  });
  open.push(tools);
  return { tools, events };
}

describe('a server', () => {
  test('a server starts on first use, once for all requests', async () => {
    const { dial, lives } = fake();
    const { tools } = start({}, dial);
    expect([tools.tools, lives.length]).toEqual([[], 0]);
    await Promise.all([tools.ready(signal()), tools.ready(signal()), tools.ready(signal())]);
    expect(lives).toHaveLength(1);
    expect(tools.tools.map(({ name }) => name)).toEqual([
      'mcp__fake__echo',
      'mcp__fake__boom',
      'mcp__fake__die',
      'mcp__fake__slow',
    ]);
    expect(tools.tools).toBe(tools.tools);
  });

  test('a server answers calls, and its errors become outcomes', async () => {
    const { tools } = start({}, fake().dial);
    await tools.ready(signal());
    const echo = await named(tools.tools, 'mcp__fake__echo').run({ a: 1 }, context());
    expect(echo).toMatchObject({ ok: true, text: '{"a":1}' });
    const boom = await named(tools.tools, 'mcp__fake__boom').run({}, context());
    expect(boom).toMatchObject({ ok: false, text: 'boom' });
  });

  test('a server with keywords is offered where the text contains one', async () => {
    const { tools } = start({ keywords: ['Invoice', '发票'] }, fake().dial);
    await tools.ready(signal());
    const [tool] = tools.tools;
    expect(tool!.inject).toBe('selective');
    const wanted = ['my INVOICES', '开发票', 'a voice'].map((text) => tool!.wanted!(text));
    expect(wanted).toEqual([true, true, false]);
  });

  test('a server offers only the tools on its allow list', async () => {
    const { tools } = start({ tools: ['ec*'] }, fake().dial);
    await tools.ready(signal());
    expect(tools.tools.map(({ name }) => name)).toEqual(['mcp__fake__echo']);
  });

  test('a server that dies during a call fails only that call and restarts', async () => {
    const { dial, lives } = fake();
    const { tools, events } = start({}, dial);
    await tools.ready(signal());
    const before = tools.tools;
    await expect(named(before, 'mcp__fake__die').run({}, context())).rejects.toThrow(/closed/);
    expect(tools.tools).toBe(before);
    const started = performance.now();
    const { ok } = await named(tools.tools, 'mcp__fake__echo').run({}, context());
    expect([ok, lives.length]).toEqual([true, 2]);
    // Not at once: a server that dies young waits first.
    expect(performance.now() - started).toBeGreaterThan(800);
    expect(tools.tools).toBe(before);
    expect(events).toEqual(['mcp.up', 'mcp.down: it ended', 'mcp.up']);
  });

  test('a server that cannot start is retried at growing intervals', async () => {
    const { dial, state } = fake();
    let dials = 0;
    const counted: Dial = (...all) => {
      dials++;
      return dial(...all);
    };
    const { tools, events } = start({}, counted);
    state.refuse = true;
    expect(tools.starting).toBe(true);
    await tools.ready(signal());
    expect([tools.tools.length, dials, tools.starting]).toEqual([0, 1, false]);
    // Within the pause, no number of requests starts the server, and none waits.
    for (let i = 0; i < 50; i++) await tools.ready(signal());
    expect(dials).toBe(1);
    await Bun.sleep(1000);
    await tools.ready(signal());
    await Bun.sleep(1200);
    await tools.ready(signal());
    expect(dials).toBe(2);
    expect(events).toEqual(['mcp.down: spawn ENOENT', 'mcp.down: spawn ENOENT']);
    state.refuse = false;
    await Bun.sleep(1000);
    await tools.ready(signal());
    await Bun.sleep(50);
    expect(tools.tools).toHaveLength(4);
  });

  test('a server that hangs at its start delays requests no longer than the limit', async () => {
    const { dial } = fake();
    const gate = Promise.withResolvers<void>();
    const late: Dial = async (...all) => {
      await gate.promise;
      return dial(...all);
    };
    const { tools } = start({}, late, 50);
    await tools.ready(signal());
    expect([tools.tools, tools.starting]).toEqual([[], true]);
    // The limit is spent once for all requests: the next one does not wait at all, not even for a short timer.
    const first = await Promise.race([
      tools.ready(signal()).then(() => 'ready'),
      Bun.sleep(1).then(() => 'a timer'),
    ]);
    expect(first).toBe('ready');
    gate.resolve();
    await until(() => !tools.starting);
    expect(tools.tools).toHaveLength(4);
  });

  test('a server whose keywords are not in the text starts without a wait', async () => {
    const { dial } = fake();
    const gate = Promise.withResolvers<void>();
    const slow: Dial = async (...all) => {
      await gate.promise;
      return dial(...all);
    };
    const { tools } = start({ keywords: ['invoice'] }, slow);
    await tools.ready(signal(), () => 'Hello');
    gate.resolve();
    await tools.ready(signal(), () => 'my invoice');
    expect(tools.tools).toHaveLength(4);
  });

  test('a server that announces changed tools gets a new list request', async () => {
    const { dial, lives, state } = fake();
    const { tools } = start({}, dial);
    await tools.ready(signal());
    state.names = ['echo', 'fresh'];
    await lives[0]!.sendToolListChanged();
    await Bun.sleep(50);
    expect(tools.tools.map(({ name }) => name)).toEqual(['mcp__fake__echo', 'mcp__fake__fresh']);
  });

  test('a slow call ends with its caller or at its time limit', async () => {
    const { tools } = start({ timeoutMs: 200 }, fake().dial);
    await tools.ready(signal());
    const slow = named(tools.tools, 'mcp__fake__slow');
    await expect(slow.run({}, context())).rejects.toThrow(/timed out/i);
    const abort = new AbortController();
    const promise = slow.run({}, context({ signal: abort.signal }));
    setTimeout(() => abort.abort(new Error('gone')), 20);
    await expect(promise).rejects.toThrow('gone');
    expect((await named(tools.tools, 'mcp__fake__echo').run({}, context())).ok).toBe(true);
  });

  test('a server does not start after close', async () => {
    const { dial, lives } = fake();
    const { tools } = start({}, dial);
    await tools.ready(signal());
    const echo = named(tools.tools, 'mcp__fake__echo');
    await tools.close();
    await expect(echo.run({}, context())).rejects.toThrow('stopping');
    expect(lives).toHaveLength(1);
  });
});

describe('a program', () => {
  test('a missing program is an error in the log, not a crash', async () => {
    const { tools, events } = start({ command: '/nonexistent/mcp-server' });
    await tools.ready(signal());
    expect(tools.tools).toEqual([]);
    expect(events.join()).toContain('mcp.down');
  });

  test('a program that does not speak MCP is stopped in time, and its stderr goes to the log', async () => {
    const { tools, events } = start({
      command: 'sh',
      args: ['-c', 'echo hello; echo trouble >&2; sleep 30'],
      timeoutMs: 400,
    });
    await tools.ready(signal());
    expect(tools.tools).toEqual([]);
    expect(events).toContain('mcp.stderr');
    expect(events.join()).toMatch(/mcp.down: (it did not start in time|.*timed out)/);
  });
});

const everything = Bun.fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);
const node = Bun.which('node');

describe('the public server-everything', () => {
  if (node === null) {
    test.skip('SKIPPED: no node on this machine to run it', () => {});
    return;
  }
  const prove = async (server: Partial<McpToolsServer>) => {
    const { tools } = start({ name: 'all', timeoutMs: 20_000, ...server });
    await tools.ready(signal());
    const names = tools.tools.map(({ name }) => name);
    expect(names).toContain('mcp__all__echo');
    const run = (name: string, args = {}) =>
      named(tools.tools, `mcp__all__${name}`).run(args, context());
    expect(await run('echo', { message: 'hi' })).toMatchObject({ ok: true, text: 'Echo: hi' });
    const image = await run('get-tiny-image');
    expect(image.media?.[0]).toMatchObject({ media: 'image', source: { mediaType: 'image/png' } });
    const structured = await run('get-structured-content', { location: 'New York' });
    expect(structured.payload).toMatchObject({ temperature: expect.any(Number) });
    const resource = await run('get-resource-reference', { resourceType: 'Text', resourceId: 1 });
    expect(resource.text).toContain('Resource ');
    expect(await run('echo', { message: 7 })).toMatchObject({ ok: false });
    return { tools, run };
  };

  test('calls work over stdin and stdout, and the server restarts after a kill', async () => {
    const secret = { reveal: () => 'seen-by-the-server' };
    const { tools, run } = await prove({
      command: node,
      args: [everything, 'stdio'],
      env: { HOPGATE_PROBE: secret },
    });
    const env = await run('get-env');
    expect(env.text).toContain('seen-by-the-server');
    // The server does not inherit the gateway's environment with its keys.
    expect(Object.keys(JSON.parse(env.text as string)).sort()).toEqual(
      ['HOME', 'HOPGATE_PROBE', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER']
        .filter((name) => name === 'HOPGATE_PROBE' || Bun.env[name] !== undefined)
        .sort(),
    );
    const pid = childRunning(everything);
    process.kill(pid, 'SIGKILL');
    // A call that meets the end of the connection fails; the next one starts the server.
    const echo = () => run('echo', { message: 'again' });
    expect(await echo().catch(echo)).toMatchObject({ ok: true, text: 'Echo: again' });
    const second = childRunning(everything);
    expect(second).not.toBe(pid);
    await tools.close();
    expect(() => childRunning(everything)).toThrow('is not running');
  }, 40_000);

  test('calls work over streamable HTTP, with a new session after a restart', async () => {
    const probe = Bun.serve({ port: 0, fetch: () => new Response() });
    const port = probe.port!;
    await probe.stop(true);
    const spawn = async () => {
      const child = Bun.spawn([node, everything, 'streamableHttp'], {
        env: { PATH: Bun.env.PATH, PORT: `${port}` },
        stdout: 'ignore',
        stderr: 'ignore',
      });
      for (let i = 0; i < 100; i++) {
        if (
          await fetch(`http://127.0.0.1:${port}/mcp`).then(
            () => true,
            () => false,
          )
        )
          break;
        await Bun.sleep(100);
      }
      return child;
    };
    let child = await spawn();
    try {
      const { run } = await prove({ command: undefined, url: `http://127.0.0.1:${port}/mcp` });
      child.kill('SIGKILL');
      await child.exited;
      await expect(run('echo', { message: 'x' })).rejects.toThrow(/failed/);
      child = await spawn();
      let message: unknown;
      for (let i = 0; i < 10 && message === undefined; i++) {
        message = await run('echo', { message: 'back' }).then(
          ({ text }) => text,
          () => undefined,
        );
        if (message === undefined) await Bun.sleep(500);
      }
      expect(message).toBe('Echo: back');
    } finally {
      child.kill('SIGKILL');
    }
  }, 40_000);
});

/** A streamable HTTP server that can lose sessions; `lost` is its response to an unknown session. */
function forgetful(lost: () => Response, list: readonly unknown[] = [GOOD]) {
  const state = { session: 'first', calls: 0, opened: 0, result: { content: [] } as object };
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 });
      const { id, method } = (await request.json()) as { id?: number; method: string };
      const headers = { 'mcp-session-id': state.session };
      const answer = (result: object) => Response.json({ jsonrpc: '2.0', id, result }, { headers });
      if (method === 'initialize') {
        state.opened++;
        const serverInfo = { name: 'forgetful', version: '1' };
        return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo });
      }
      if (request.headers.get('mcp-session-id') !== state.session) return lost();
      if (id === undefined) return new Response(null, { status: 202 });
      if (method === 'tools/list') return answer({ tools: list });
      state.calls++;
      return answer(state.result);
    },
  });
  return { state, url: `http://127.0.0.1:${server.port}/mcp`, stop: () => server.stop(true) };
}

const GOOD = { name: 'good', inputSchema: { type: 'object' } };
const rpcError = (status: number, code: number, message: string) => () =>
  Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status });

describe('a server behind an address', () => {
  const texts: readonly (readonly [string, () => Response])[] = [
    ['404', () => new Response('gone', { status: 404 })],
    ['400 of the SDK', rpcError(400, -32_000, 'Bad Request: No valid session ID provided')],
    ['400 of others', rpcError(400, -32_000, 'Bad Request: Server not initialized')],
    ['400 in plain words', () => new Response('unknown session', { status: 400 })],
  ];
  for (const [name, lost] of texts) {
    test(`a server that forgot the session (${name}) gets a new one, and the call runs once`, async () => {
      const { state, url, stop } = forgetful(lost);
      const { tools } = start({ command: undefined, url });
      await tools.ready(signal());
      state.session = 'second';
      state.result = { content: [{ type: 'text', text: 'done' }] };
      const tool = named(tools.tools, 'mcp__fake__good');
      expect(await tool.run({}, context())).toMatchObject({ ok: true, text: 'done' });
      expect([state.calls, state.opened]).toEqual([1, 2]);
      await stop();
    });
  }

  test('a server that refuses a call for another reason keeps its session', async () => {
    const { state, url, stop } = forgetful(rpcError(400, -32_602, 'Bad Request: no such colour'));
    const { tools } = start({ command: undefined, url });
    await tools.ready(signal());
    state.session = 'second';
    const tool = named(tools.tools, 'mcp__fake__good');
    await expect(tool.run({}, context())).rejects.toThrow('no such colour');
    expect(state.opened).toBe(1);
    await stop();
  });

  test.each([401, 403])(
    'the key is refused (%d): the model hears so, and not to repeat the call',
    async (status) => {
      const { state, url, stop } = forgetful(() => new Response('no such token', { status }));
      const { tools } = start({ command: undefined, url });
      await tools.ready(signal());
      state.session = 'second';
      const run = named(tools.tools, 'mcp__fake__good').run({}, context());
      const thrown = (await run.catch((error: unknown) => error)) as ToolError;
      expect(thrown.message).toBe(`The MCP server "fake" failed: status ${status}: no such token.`);
      expect(thrown.retryable).toBe(false);
      await stop();
    },
  );

  test('an answer that is none is told in words, not as a list of what a parser expected', async () => {
    const { state, url, stop } = forgetful(() => new Response());
    const { tools } = start({ command: undefined, url });
    await tools.ready(signal());
    state.result = null as never;
    const run = named(tools.tools, 'mcp__fake__good').run({}, context());
    await expect(run).rejects.toThrow('it answered with what is no message of the protocol.');
    await stop();
  });

  test('a server that never accepts a session gets one retry only', async () => {
    const { state, url, stop } = forgetful(rpcError(400, -32_000, 'No valid session ID provided'));
    const { tools } = start({ command: undefined, url });
    await tools.ready(signal());
    Object.defineProperty(state, 'session', { get: () => Math.random().toString() });
    const tool = named(tools.tools, 'mcp__fake__good');
    await expect(tool.run({}, context())).rejects.toThrow(/session/);
    expect(state.opened).toBeLessThan(4);
    await stop();
  });

  test('a server offers its valid tools, and invalid ones are logged', async () => {
    const bad = [
      { inputSchema: { type: 'object' } },
      { name: '', inputSchema: { type: 'object' } },
      { name: 'no_schema' },
      { name: 'no_type', inputSchema: { properties: {} } },
      { name: 'text', inputSchema: { type: 'string' } },
      'text',
      null,
      7,
    ];
    const odd = { name: 'odd', description: 7, title: null, inputSchema: { type: 'object' }, x: 1 };
    const { state, url, stop } = forgetful(() => new Response(), [...bad, GOOD, odd]);
    const { tools, events } = start({ command: undefined, url });
    await tools.ready(signal());
    expect(tools.tools.map(({ name }) => name)).toEqual(['mcp__fake__good', 'mcp__fake__odd']);
    expect(tools.tools[1]!.description).toBe('odd');
    expect(events.filter((line) => line.startsWith('mcp.tool_skipped'))).toHaveLength(bad.length);
    expect(events).toContain('mcp.tool_skipped: it has no inputSchema');
    state.result = { content: [{ type: 'novelty', x: 1 }, { type: 'text', text: 'and words' }, 5] };
    const message = await named(tools.tools, 'mcp__fake__good').run({}, context());
    expect(message.text).toBe('{"type":"novelty","x":1}\n\nand words');
    await stop();
  });

  test('a server that speaks neither transport gives a readable error', async () => {
    const server = Bun.serve({ port: 0, fetch: () => new Response('', { status: 404 }) });
    const { tools, events } = start({ command: undefined, url: `http://127.0.0.1:${server.port}` });
    await tools.ready(signal());
    expect(events[0]).toContain('neither streamable HTTP (status 404) nor the older HTTP with SSE');
    await server.stop(true);
  });

  test('a server with the older transport (HTTP with SSE) works', async () => {
    const probe = Bun.serve({ port: 0, fetch: () => new Response() });
    const port = probe.port!;
    await probe.stop(true);
    const child = Bun.spawn([Bun.which('node') ?? process.execPath, everything, 'sse'], {
      env: { PATH: Bun.env.PATH, PORT: `${port}` },
      stdout: 'ignore',
      stderr: 'ignore',
    });
    try {
      for (let i = 0; i < 100; i++) {
        const up = await fetch(`http://127.0.0.1:${port}/`).then(Boolean, () => false);
        if (up) break;
        await Bun.sleep(50);
      }
      const { tools } = start({ command: undefined, url: `http://127.0.0.1:${port}/sse` });
      await tools.ready(signal());
      const echo = named(tools.tools, 'mcp__fake__echo');
      const { text } = await echo.run({ message: 'old' }, context());
      expect(text).toBe('Echo: old');
      await tools.close();
    } finally {
      child.kill('SIGKILL');
    }
  }, 60_000);
});

/** The process id of the child of this process (below its guard) that runs the script. */
function childRunning(script: string): number {
  const list = Bun.spawnSync(['ps', '-eo', 'pid=,ppid=,args=']).stdout.toString();
  const lines = list.split('\n').map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []);
  const parents = new Map(lines.map(([, pid, parent]) => [pid, Number(parent)]));
  for (const [, pid, parent, args] of lines) {
    const mine = parents.get(parent!) === process.pid;
    if (mine && args?.includes(script)) return Number(pid);
  }
  throw new Error(`${script} is not running`);
}

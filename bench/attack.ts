/** Honest streams beside an attacker: `bun bench/attack.ts [--minutes N] [--streams N] [--alone TIMES]`; the longest gap between two events, and memory. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { announcedPort, lineReader, startChild, stopChildren } from './children.ts';
import { sleep } from './clock.ts';
import { loopMilliseconds, residentMegabytes } from './process-usage.ts';
import { BINARY } from './product.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    streams: { type: 'string', default: '200' },
    /** Attacks that are under way at the same time. */
    attackers: { type: 'string', default: '4' },
    /** Each kind of attack by itself instead, so often, against a gateway that has nothing else to do. */
    alone: { type: 'string' },
    /** With `alone`: only the kinds whose name holds this. */
    kind: { type: 'string', default: '' },
  },
});
const MINUTES = Number(values.minutes);
const STREAMS = Number(values.streams);
/** Milliseconds between two events of an honest stream, and how many each has. */
const PACE = 100;
const EVENTS = 300;

const encoder = new TextEncoder();
const chunk = (text: string) =>
  encoder.encode(
    `data: ${JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'paced',
      choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
    })}\n\n`,
  );
const END = encoder.encode(
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'paced',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  })}\n\ndata: [DONE]\n\n`,
);

/** The honest vendor: one event every {@link PACE} ms. */
function startVendor() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: () => {
      let timer: ReturnType<typeof setInterval>;
      let sent = 0;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          timer = setInterval(() => {
            if (sent++ < EVENTS) return controller.enqueue(chunk(`word ${sent} `));
            clearInterval(timer);
            controller.enqueue(END);
            controller.close();
          }, PACE);
        },
        cancel: () => clearInterval(timer),
      });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    },
  });
}

interface Seen {
  events: number;
  complete: number;
  broken: number;
  /** Longest milliseconds between two chunks of one stream. */
  longest: number;
  /** Gaps of more than 150, 250 and 1000 ms. */
  readonly over: [number, number, number];
}
const fresh = (): Seen => ({ events: 0, complete: 0, broken: 0, longest: 0, over: [0, 0, 0] });
let seen = fresh();

/** One honest client: a stream after the other. */
async function honest(url: string, until: () => boolean): Promise<void> {
  while (!until()) {
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'honest/paced',
          stream: true,
          messages: [{ role: 'user', content: 'Go on.' }],
        }),
      });
      let last = 0;
      let tail = '';
      const decoder = new TextDecoder();
      for await (const part of response.body ?? []) {
        const now = performance.now();
        if (last !== 0) {
          const gap = now - last;
          seen.longest = Math.max(seen.longest, gap);
          for (const [i, limit] of [150, 250, 1000].entries()) if (gap > limit) seen.over[i]!++;
        }
        last = now;
        seen.events++;
        tail = (tail + decoder.decode(part, { stream: true })).slice(-64);
      }
      if (tail.includes('[DONE]')) seen.complete++;
      else seen.broken++;
    } catch {
      seen.broken++;
      await sleep(200);
    }
  }
}

/** The longest time that this process's own loop stood still: it is part of every gap. */
function watchOwnLoop() {
  let longest = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 10);
    last = now;
  }, 10).unref();
  return () => {
    const was = longest;
    longest = 0;
    return was;
  };
}

interface Longest {
  /** Milliseconds that one answer took at most. */
  wait: number;
  /** Milliseconds of CPU that the event loop spent within one of them at most: not disturbed by other programs. */
  cpu: number;
}

/** How long `GET /healthz`, asked every 5 ms, waits for its answer at most until `work` is done. */
async function longestAnswer(
  url: string,
  pid: number,
  work: () => Promise<unknown>,
): Promise<Longest> {
  let over = false;
  const longest = { wait: 0, cpu: 0 };
  const probe = (async () => {
    while (!over) {
      const before = performance.now();
      const cpu = loopMilliseconds(pid);
      await (await fetch(`${url}/healthz`)).arrayBuffer();
      longest.wait = Math.max(longest.wait, performance.now() - before);
      longest.cpu = Math.max(longest.cpu, loopMilliseconds(pid) - cpu);
      await sleep(5);
    }
  })();
  await work();
  over = true;
  await probe;
  return longest;
}

/** Each kind by itself; prints the longest wait of each time. */
async function alone(
  url: string,
  pid: number,
  tell: (line: string) => void,
  line: (ms: number) => Promise<string>,
): Promise<void> {
  tell('kinds');
  const kinds = (JSON.parse(await line(5000)) as string[]).filter((kind) =>
    kind.includes(values.kind),
  );
  console.log(
    '| kind | longest answers of /healthz: ms of CPU (in all) | RSS, MB |\n| --- | --- | --: |',
  );
  for (const kind of kinds) {
    const times: string[] = [];
    for (let i = 0; i < Number(values.alone); i++) {
      const { wait, cpu } = await longestAnswer(url, pid, async () => {
        tell(JSON.stringify({ url, kind }));
        await line(60_000);
        // What is done behind the answer counts, too.
        await sleep(700);
      });
      times.push(`${cpu.toFixed(0)} (${wait.toFixed(0)})`);
    }
    console.log(`| ${kind} | ${times.join(', ')} | ${residentMegabytes(pid).toFixed(0)} |`);
  }
}

/** Honest streams, before, beside and after all kinds of attack. */
async function soak(
  url: string,
  pid: number,
  tell: (line: string) => void,
  line: (ms: number) => Promise<string>,
): Promise<void> {
  console.log(`${STREAMS} honest streams, one event every ${PACE} ms\n`);
  const ownLoop = watchOwnLoop();
  let over = false;
  let turn = 0;
  const probe = async () => {
    while (!over) {
      const { cpu } = await longestAnswer(url, pid, () => sleep(500));
      turn = Math.max(turn, cpu);
    }
  };
  void probe().catch(() => {});
  const clients = Array.from({ length: STREAMS }, async (_, i) => {
    await sleep((i / STREAMS) * 2000);
    await honest(url, () => over);
  });
  await sleep(5000);
  const report = (what: string) => {
    const [a, b, c] = seen.over;
    const rss = residentMegabytes(pid).toFixed(0);
    console.log(
      `| ${what} | ${seen.events} | ${seen.complete} | ${seen.broken} | ${seen.longest.toFixed(0)} | ${ownLoop().toFixed(0)} | ${turn.toFixed(0)} | ${a} | ${b} | ${c} | ${rss} |`,
    );
    seen = fresh();
    turn = 0;
  };
  console.log(
    '| | events | whole streams | broken | longest gap, ms | of it the bench itself | longest turn, ms of CPU | > 150 ms | > 250 ms | > 1 s | RSS, MB |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |',
  );
  ownLoop();
  seen = fresh();
  await sleep(Math.min(60_000, MINUTES * 15_000));
  report('before');
  tell(JSON.stringify({ url, attackers: Number(values.attackers) }));
  for (let minute = 1; minute <= MINUTES; minute++) {
    await sleep(60_000);
    report(`minute ${minute}`);
  }
  tell('stop');
  const told = await line(60_000);
  await sleep(30_000);
  report('after, 30 s at rest');
  over = true;
  console.log(`\nAttacks: ${told}`);
  await Promise.race([Promise.all(clients), sleep(3000)]);
}

const folder = mkdtempSync(join(tmpdir(), 'hopgate-attack-'));
const vendor = startVendor();
try {
  mkdirSync(join(folder, 'home'));
  const attacker = startChild(
    [process.execPath, new URL('attack-clients.ts', import.meta.url).pathname],
    { logFile: join(folder, 'attacker.log'), stdout: 'pipe', stdin: 'pipe' },
  );
  const line = lineReader(attacker);
  const evil = Number((await line(15_000)).trim());
  const config = join(folder, 'hopgate.yaml');
  writeFileSync(
    config,
    `
listen: 127.0.0.1:0
providers:
  honest: { protocol: openai-chat, base_url: "http://127.0.0.1:${vendor.port}/v1", keys: ["sk-honest-0123456789abcdef"], models: ["*"] }
  evil: { protocol: openai-chat, base_url: "http://127.0.0.1:${evil}/v1", keys: ["sk-evil-0123456789abcdef"], models: ["*"] }
  evilmessages: { protocol: anthropic-messages, base_url: "http://127.0.0.1:${evil}", keys: ["sk-evil-0123456789abcdef"], models: ["*"] }
  evilglm: { protocol: openai-chat, profile: glm, base_url: "http://127.0.0.1:${evil}/v1", keys: ["sk-evil-0123456789abcdef"], models: ["*"] }
samples: { mode: errors, dir: "${join(folder, 'samples')}", max_bytes: 200000000 }
`,
  );
  const child = startChild([BINARY, 'serve', '--config', config, '--port', '0'], {
    env: { HOPGATE_HOME: join(folder, 'home') },
    logFile: join(folder, 'hopgate.log'),
    stdout: 'pipe',
    cwd: folder,
  });
  const url = `http://127.0.0.1:${await announcedPort(child)}`;
  const machine = `${cpus()[0]!.model}, ${cpus().length} cores`;
  const tell = (text: string) =>
    void (attacker.process.stdin as import('bun').FileSink).write(`${text}\n`);
  console.log(`${machine}\n`);
  if (values.alone === undefined) await soak(url, child.pid, tell, line);
  else await alone(url, child.pid, tell, line);
} finally {
  await stopChildren();
  vendor.stop(true);
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);

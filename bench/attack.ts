/** Honest streams beside an attacker: `bun bench/attack.ts [--minutes N] [--streams N]`; the longest gap between two events, and memory. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { announcedPort, lineReader, startChild, stopChildren } from './children.ts';
import { sleep } from './clock.ts';
import { residentMegabytes } from './process-usage.ts';
import { BINARY } from './product.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    streams: { type: 'string', default: '200' },
    /** Attacks that are under way at the same time. */
    attackers: { type: 'string', default: '4' },
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
  console.log(
    `${cpus()[0]!.model}, ${cpus().length} cores; ${STREAMS} honest streams, one event every ${PACE} ms\n`,
  );
  const ownLoop = watchOwnLoop();
  let over = false;
  const clients = Array.from({ length: STREAMS }, async (_, i) => {
    await sleep((i / STREAMS) * 2000);
    await honest(url, () => over);
  });
  await sleep(5000);
  const report = (what: string) => {
    const [a, b, c] = seen.over;
    const rss = residentMegabytes(child.pid).toFixed(0);
    console.log(
      `| ${what} | ${seen.events} | ${seen.complete} | ${seen.broken} | ${seen.longest.toFixed(0)} | ${ownLoop().toFixed(0)} | ${a} | ${b} | ${c} | ${rss} |`,
    );
    seen = fresh();
  };
  console.log(
    '| | events | whole streams | broken | longest gap, ms | of it the bench itself | > 150 ms | > 250 ms | > 1 s | RSS, MB |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |',
  );
  ownLoop();
  seen = fresh();
  await sleep(Math.min(60_000, MINUTES * 15_000));
  report('before');
  (attacker.process.stdin as import('bun').FileSink).write(
    `${JSON.stringify({ url, attackers: Number(values.attackers) })}\n`,
  );
  for (let minute = 1; minute <= MINUTES; minute++) {
    await sleep(60_000);
    report(`minute ${minute}`);
  }
  (attacker.process.stdin as import('bun').FileSink).write('stop\n');
  const told = await line(60_000);
  await sleep(30_000);
  report('after, 30 s at rest');
  over = true;
  console.log(`\nAttacks: ${told}`);
  await stopChildren();
  await Promise.race([Promise.all(clients), sleep(3000)]);
} finally {
  await stopChildren();
  vendor.stop(true);
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);

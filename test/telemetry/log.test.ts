/** The log: one line per event, JSON or readable, never a credential. */

import { describe, expect, test } from 'bun:test';
import { EventEmitter } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { shortAgent } from '../../src/telemetry/client-name.ts';
import { type ExchangeRecord, logExchange } from '../../src/telemetry/exchange.ts';
import { batched, createLog, event, type LogOptions, SILENT } from '../../src/telemetry/log.ts';

function capture(options: LogOptions = {}) {
  const lines: string[] = [];
  return { lines, log: createLog({ ...options, write: (line) => lines.push(line) }) };
}

const RECORD: ExchangeRecord = {
  id: 'req_1790000000000_abc123',
  protocol: 'anthropic-messages',
  userAgent: 'claude-cli/2.1.330 (external, sdk-cli)',
  target: 'glm/glm-4.7',
  status: 200,
  stream: true,
  timings: { queue: 1.234, firstByte: 250.06, total: 1000 },
  usage: { input: 10, output: 5, cacheRead: 3 },
  notes: 'rewritten_N_srvtoolu_ids=2',
  hops: 2,
};

describe('JSON lines', () => {
  test('level by name, time in ISO, no pid and host name', () => {
    const { lines, log } = capture({ format: 'json' });
    log.info({ a: 1 }, 'hello');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toEndWith('\n');
    const entry = JSON.parse(lines[0]!);
    expect(Object.keys(entry)).toEqual(['level', 'time', 'a', 'msg']);
    expect(entry).toMatchObject({ level: 'info', a: 1, msg: 'hello' });
    expect(new Date(entry.time).toISOString()).toBe(entry.time);
  });

  test('without a terminal lines are JSON, on a terminal readable; either can be forced', () => {
    for (const [options, json] of [
      [{}, true],
      [{ isTTY: true }, false],
      [{ isTTY: true, format: 'json' }, true],
      [{ format: 'pretty' }, false],
    ] as const) {
      const { lines, log } = capture(options);
      log.info('x');
      expect(lines[0]!.startsWith('{')).toBe(json);
    }
  });

  test('below the level nothing is written', () => {
    const { lines, log } = capture({ level: 'warn' });
    log.info('no');
    event(log, 'no.such', {});
    log.warn('yes');
    expect(lines).toHaveLength(1);
    SILENT.fatal('nothing');
  });

  test('a named event keeps its name in the field `event`', () => {
    const { lines, log } = capture();
    event(log, 'chat.process.hop3.assembled', { originalMessageCount: 3 });
    expect(JSON.parse(lines[0]!)).toMatchObject({
      event: 'chat.process.hop3.assembled',
      originalMessageCount: 3,
    });
  });

  test('credentials are masked everywhere, including children', () => {
    const key = 'sk-ant-api03-AbCdEfGh12345678901234567890';
    for (const format of ['json', 'pretty'] as const) {
      const { lines, log } = capture({ format });
      log
        .child({ upstream: `https://x/?key=${key}` })
        .error(
          { headers: { authorization: `Bearer ${key}` }, err: new Error(`bad key ${key}`) },
          `while sending ${key}`,
        );
      expect(lines.join('')).toContain('while sending ***');
      expect(lines.join('')).not.toContain(key.slice(-20));
    }
  });
});

describe('the exchange line', () => {
  test('the line has every field', () => {
    const { lines, log } = capture();
    logExchange(log, RECORD);
    const { time: _, ...entry } = JSON.parse(lines[0]!);
    expect(entry).toEqual({
      level: 'info',
      event: 'exchange',
      id: RECORD.id,
      client: 'anthropic-messages claude-cli/2.1.330',
      target: 'glm/glm-4.7',
      status: 200,
      stream: true,
      timings: { queue: 1.2, first_byte: 250.1, total: 1000 },
      usage: { input: 10, output: 5, cache_read: 3 },
      notes: 'rewritten_N_srvtoolu_ids=2',
      hops: 2,
    });
  });

  test('a key made at run time has its name beside its id', () => {
    const { lines, log } = capture({ format: 'json' });
    logExchange(log, { ...RECORD, key: 'hk_1', keyName: 'metered' });
    expect(JSON.parse(lines[0]!)).toMatchObject({ key: 'hk_1', key_name: 'metered' });
  });

  test('any text of clients and vendors gives one line of JSON', () => {
    const texts = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u2028', 'é', ' ') });
    const tokens = fc.oneof(fc.nat(), fc.constantFrom(0.5, Number.POSITIVE_INFINITY));
    const some = { requiredKeys: ['input', 'output'] as ['input', 'output'] };
    const counts = { input: tokens, output: tokens, cacheRead: tokens, reasoning: tokens };
    const failure = fc.record({ kind: texts, message: texts }, { requiredKeys: ['kind'] });
    const records = fc.record(
      {
        id: texts,
        protocol: texts,
        userAgent: texts,
        target: texts,
        status: fc.integer({ min: 200, max: 599 }),
        stream: fc.boolean(),
        timings: fc.record({ queue: fc.nat(), total: fc.nat() }, { requiredKeys: ['total'] }),
        usage: fc.record(counts, some),
        notes: texts,
        hops: fc.nat(),
        error: failure,
        aborted: fc.boolean(),
      },
      { requiredKeys: ['id', 'protocol', 'status', 'stream', 'timings'] },
    );
    fc.assert(
      fc.property(records, (record) => {
        const { lines, log } = capture();
        logExchange(log, record);
        expect(lines).toHaveLength(1);
        expect(lines[0]!.indexOf('\n')).toBe(lines[0]!.length - 1);
        const { time: _, level: __, ...entry } = JSON.parse(lines[0]!);
        const { id, protocol, status, stream, timings, usage, error } = record;
        const agent = shortAgent(record.userAgent);
        const finite = (n?: number) => (n === Number.POSITIVE_INFINITY ? null : n);
        const expected = {
          event: 'exchange',
          id,
          client: agent === '' ? protocol : `${protocol} ${agent}`,
          target: record.target,
          status,
          stream,
          timings,
          usage: usage && {
            input: finite(usage.input),
            output: finite(usage.output),
            cache_read: finite(usage.cacheRead),
            reasoning: finite(usage.reasoning),
          },
          notes: record.notes === '' ? undefined : record.notes,
          hops: record.hops ?? 1,
          error: error?.kind,
          error_message: error?.message,
          aborted: record.aborted === true ? true : undefined,
        };
        expect(entry).toEqual(JSON.parse(JSON.stringify(expected)));
      }),
    );
  });

  test('the level follows the outcome', () => {
    const { lines, log } = capture();
    logExchange(log, { ...RECORD, status: 429, error: { kind: 'rate_limit', message: 'slow' } });
    logExchange(log, { ...RECORD, status: 502, error: { kind: 'upstream' } });
    // The stream had begun with 200 before it failed.
    logExchange(log, { ...RECORD, error: { kind: 'upstream' } });
    const entries = lines.map((line) => JSON.parse(line));
    expect(entries.map(({ level }) => level)).toEqual(['warn', 'error', 'warn']);
    expect(entries[0]).toMatchObject({ error: 'rate_limit', error_message: 'slow' });
  });

  const AGENT: Partial<ExchangeRecord> = {
    id: 'req_1790000000000_e59ti260kd',
    usage: { input: 3000, cacheRead: 18_200, output: 332, reasoning: 80 },
    cost: 4_589_600,
    key: 'hk_3SVfPq9dYw2m',
    keyName: 'alice-laptop',
    notes: 'billing_header_dropped,cache_control_dropped,parameter_dropped=2',
    hops: 1,
  };
  // What follows the time and the level of an exchange.
  test.each<[string, Partial<ExchangeRecord>, string]>([
    [
      'who asked is the key',
      AGENT,
      '200 alice-laptop → glm/glm-4.7  1.0 s  21k in, 412 out  $0.00459  18k cached  first 250 ms  e59ti260kd',
    ],
    [
      'what has no room is left to the JSON line',
      { ...AGENT, target: 'anthropic/claude-opus-4-8', timings: { firstByte: 9, total: 12_345 } },
      '200 alice-laptop → anthropic/claude-opus-4-8  12.3 s  21k in, 412 out  $0.00459  18k cached  e59ti260kd',
    ],
    [
      'without a key, who asked is the program',
      { ...AGENT, key: '', timings: { total: 518 } },
      '200 claude-cli → glm/glm-4.7  518 ms  21k in, 412 out  $0.00459  18k cached  3 notes  e59ti260kd',
    ],
    [
      'a lost cache comes before other details',
      { ...AGENT, usage: { input: 9, output: 5 }, lost: { tokens: 2800, nanoUsd: 1_372_000 } },
      '200 alice-laptop → glm/glm-4.7  1.0 s  9 in, 5 out  $0.00459  cache lost 2.8k ($0.00137)  e59ti260kd',
    ],
    [
      'a note that is alone has its name; several hops cost, and are told',
      { notes: 'b_moved', hops: 2 },
      '200 claude-cli → glm/glm-4.7  1.0 s  13 in, 5 out  2 hops  3 cached  first 250 ms  b_moved  abc123',
    ],
    [
      'a client without a name is its protocol, and an amount has no exponent',
      { ...AGENT, key: '', userAgent: '', cost: 120, usage: { input: 1_250_400, output: 0 } },
      '200 anthropic-messages → glm/glm-4.7  1.0 s  1.3M in, 0 out  $0.00000012  first 250 ms  e59ti260kd',
    ],
    [
      'a user agent in several words is its first',
      { ...AGENT, key: '', userAgent: 'OpenAI/Python 2.8.1', stream: false },
      '200 OpenAI/Python → glm/glm-4.7  1.0 s  21k in, 412 out  $0.00459  18k cached  3 notes  e59ti260kd',
    ],
  ])('readable, in 120 columns: %s', (_what, more, shown) => {
    const { lines, log } = capture({ format: 'pretty' });
    logExchange(log, { ...RECORD, ...more });
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d INFO {2}200 /);
    expect(lines[0]!.slice('00:00:00 INFO  '.length)).toBe(`${shown}\n`);
    expect(lines[0]!.trimEnd().length).toBeLessThanOrEqual(120);
    // Nothing is shown twice, and no field is shown as an object.
    expect(lines[0]).not.toMatch(/status=|usage=|timings=|[{}]/);
  });

  test('readable: an error ends the line, with its whole message', () => {
    const { lines, log } = capture({ format: 'pretty' });
    const message = 'Provider glm has no model "glm-4.8". '.repeat(5).trim();
    const error = { kind: 'internal', message, cause: 'x.ts:3' };
    logExchange(log, { ...RECORD, ...AGENT, status: 500, error });
    expect(lines[0]).toEndWith(`  e59ti260kd  internal: ${message} (x.ts:3)\n`);
    expect(lines[0]!.indexOf('  internal:')).toBeLessThanOrEqual(120);
  });

  test('readable: a client that left is told in words', () => {
    const { lines, log } = capture({ format: 'pretty' });
    logExchange(log, { ...RECORD, status: 499, aborted: true });
    expect(lines[0]).toContain('  client left');
    expect(lines[0]).not.toContain('aborted');
  });

  const ODD = [
    'a\nINFO  200 forged → line',
    '\x1b[2J',
    '\x1b]52;c;eA==\x07',
    '\x9b31m',
    '\u202egnorw',
    'a\rb',
    '\u2028',
    '\u0085',
    '\u2066',
    '\x7f',
  ];
  test.each(ODD)(
    'JSON: no text breaks a line or controls the terminal that shows it (%j)',
    (text) => {
      const { lines, log } = capture({ format: 'json' });
      const odd = { ...RECORD, target: `v/${text}`, userAgent: text, notes: text, key: text };
      logExchange(log, { ...odd, status: 502, error: { kind: text, message: text } });
      event(log, text, { a: text, b: [text], c: { [text]: text } });
      log.error({ err: Object.assign(new Error(text), { stack: text }) }, text);
      for (const line of lines) expect(line).toMatch(/^[^\p{Cc}\u2028-\u202e\u2066-\u2069]*\n$/u);
      // Programs read the texts as they were.
      expect(JSON.parse(lines[1]!)).toMatchObject({ event: text, a: text, c: { [text]: text } });
    },
  );

  test.each([...ODD, 'x'.repeat(400_000)])(
    'readable: no text forges a line, controls the terminal or is endless',
    (text) => {
      const { lines, log } = capture({ format: 'pretty' });
      const odd = { ...RECORD, target: `v/${text}`, userAgent: text, notes: text, key: text };
      logExchange(log, { ...odd, status: 502, error: { kind: text, message: text } });
      event(log, text, { a: text, b: [text], c: { [text]: text } });
      log.error({ err: Object.assign(new Error(text), { stack: text }) }, text);
      for (const line of lines) {
        expect(line.length).toBeLessThan(40_000);
        expect(line.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u);
      }
      expect(lines[0]!.split('\n')).toHaveLength(2);
      expect(lines[1]!.split('\n')).toHaveLength(2);
    },
  );

  test('JSON lines are bounded too, and hold no part of a credential', () => {
    const { lines, log } = capture({ format: 'json' });
    const message = `${'words '.repeat(330)}sk-ant-api03-${'k'.repeat(400_000)}`;
    logExchange(log, { ...RECORD, status: 502, error: { kind: 'upstream', message } });
    event(log, 'x', { message: message.repeat(3) });
    for (const line of lines) {
      expect(line.length).toBeLessThan(8000);
      expect(line).not.toContain('sk-ant-api03-k');
    }
  });

  test('readable: an error’s stack follows, indented', () => {
    const { lines, log } = capture({ format: 'pretty' });
    log.error({ err: new TypeError('boom') }, 'it failed');
    expect(lines[0]).toMatch(/ERROR it failed\n {4}TypeError: boom\n {4}/);
  });

  test('readable lines have colours only on request', () => {
    const plain = capture({ format: 'pretty' });
    plain.log.warn('x');
    expect(plain.lines[0]).not.toContain('\u001b');
    const colour = capture({ format: 'pretty', colour: true });
    colour.log.warn('x');
    expect(colour.lines[0]).toContain('\u001b[');
  });

  test('a user agent is cut to the program name', () => {
    expect(shortAgent('OpenAI/JS 6.49.0')).toBe('OpenAI/JS 6.49.0');
    expect(shortAgent('claude-cli/2.1 (external)')).toBe('claude-cli/2.1');
    expect(shortAgent('x'.repeat(100))).toHaveLength(40);
    expect(shortAgent(undefined)).toBe('');
  });
});

describe('lines are on stderr, and stdout stays empty', () => {
  const path = JSON.stringify(new URL('../../src/telemetry/log.ts', import.meta.url).pathname);
  const run = (body: string) => {
    const script = `import { createLog, maskedEvent } from ${path}; const log = createLog(); ${body}`;
    const { stderr, stdout } = Bun.spawnSync([process.execPath, '-e', script]);
    expect(stdout.toString()).toBe('');
    return stderr.toString().trim().split('\n');
  };
  const many = `for (let i = 0; i < 200; i++) { log.info({ i }, 'x'.repeat(1000));`;
  const turn = `await new Promise((done) => setImmediate(done));`;

  test('lines are written before the process is killed, except those of its last turn', () => {
    const lines = run(`${many} ${turn} } process.kill(process.pid, 'SIGKILL');`);
    expect(lines).toHaveLength(200);
    expect(JSON.parse(lines[199]!).i).toBe(199);
  });

  test('an event is written before the call returns, after the pending exchange lines', () => {
    const lines = run(
      `maskedEvent(log, 'exchange', '"i":0', 'info'); log.info({ i: 1 }); maskedEvent(log, 'exchange', '"i":2', 'info'); process.kill(process.pid, 'SIGKILL');`,
    );
    expect(lines.map((line) => JSON.parse(line).i)).toEqual([0, 1]);
  });

  test('single lines and batches hold no secrets of the configuration', () => {
    for (const format of ['json', 'pretty']) {
      const script = `import { createLog, maskedEvent } from ${path};
        const log = createLog({ format: '${format}', secrets: () => ['hunter-two'] });
        log.info({ a: 'hunter-two' }, 'hunter-two');
        for (let i = 0; i < 9; i++) maskedEvent(log, 'exchange', '"i":' + i + ',"a":"a hunter-two"', 'info');`;
      const { stderr } = Bun.spawnSync([process.execPath, '-e', script]);
      const text = stderr.toString();
      expect(text.trim().split('\n')).toHaveLength(10);
      expect(text).not.toContain('hunter-two');
      expect(text.split('**********')).toHaveLength(12);
    }
  });

  const FULL = '/dev/full';
  test.skipIf(!existsSync(FULL))('a full disk fails no caller, and fills no memory', () => {
    const script = `import { createLog, maskedEvent } from ${path};
      const log = createLog({ format: 'json' });
      log.info('first');
      const before = process.memoryUsage.rss();
      const long = '"a":"' + 'x'.repeat(10_000) + '"';
      for (let i = 0; i < 10_000; i++) {
        maskedEvent(log, 'exchange', long, 'info');
        if (i % 20 === 0) await new Promise((done) => setImmediate(done));
      }
      log.info('last');
      console.log(process.memoryUsage.rss() - before < 50e6);`;
    const { stdout, exitCode } = Bun.spawnSync([process.execPath, '-e', script], {
      stderr: Bun.file(FULL),
    });
    expect([stdout.toString(), exitCode]).toEqual(['true\n', 0]);
  });

  test.skipIf(process.platform !== 'linux')(
    'an unread pipe blocks no caller, and a late reader gets every held line',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'hopgate-log-'));
      const script = `import { createLog } from ${path}; import { existsSync, writeFileSync } from 'node:fs';
        const log = createLog({ format: 'json' });
        for (let i = 0; i < 500; i++) {
          log.info({ i }, 'x'.repeat(1000));
          await new Promise((done) => setImmediate(done));
        }
        writeFileSync('written', '');
        // Once the pipe is read.
        while (!existsSync('reads')) await Bun.sleep(10);
        await Bun.sleep(50);
        log.info({ i: 500 });`;
      writeFileSync(join(folder, 'script.ts'), script);
      const reader = 'while [ ! -e written ]; do sleep 0.01; done; touch reads; cat > lines';
      const { exitCode } = Bun.spawnSync(
        ['sh', '-c', `"${process.execPath}" script.ts 2>&1 >/dev/null | { ${reader}; }`],
        { cwd: folder, timeout: 60_000 },
      );
      expect(exitCode).toBe(0);
      const lines = readFileSync(join(folder, 'lines'), 'utf8').trim().split('\n');
      expect(lines.map((line) => JSON.parse(line).i)).toEqual(
        Array.from({ length: 501 }, (_, i) => i),
      );
      rmSync(folder, { recursive: true });
    },
  );

  test('the number of lost lines is logged once lines can be written again', () => {
    const stderr = new EventEmitter();
    const written: string[] = [];
    const destination = Object.assign(stderr, {
      write: (text: string) => written.push(text),
    });
    const lost: number[] = [];
    const lines = batched(
      destination,
      (text) => text,
      (count) => lost.push(count),
    );
    lines.now('a\n');
    stderr.emit('drain');
    stderr.emit('drop', 'b\nc\n');
    stderr.emit('drop', 'd\n');
    stderr.emit('error', new Error('ENOSPC'));
    expect(lost).toEqual([]);
    stderr.emit('drain');
    stderr.emit('drain');
    expect([written, lost]).toEqual([['a\n'], [3]]);
  });

  test('every line is written, in order, when the process ends or calls exit', () => {
    for (const end of ['', 'process.exit(3);']) {
      const lines = run(`${many} } ${end}`);
      expect(lines.map((line) => JSON.parse(line).i)).toEqual(
        Array.from({ length: 200 }, (_, i) => i),
      );
    }
  });
});

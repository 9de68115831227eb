/** The commands about samples, from the command line to what is printed, against the built-in model. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { widthOf } from '../../src/cli/terminal.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { Recorder } from '../../src/samples/record/recorder.ts';
import { exchange, play, told } from '../samples/record/support.ts';
import { createWorld, type World } from './world.ts';

const CONFIG = `providers:
  demo: { protocol: openai-chat, base_url: "demo:", models: ["*"] }
samples: { mode: all }
`;

let world: World;
let id: string;
beforeEach(async () => {
  world = createWorld();
  world.write('.config/hopgate/hopgate.yaml', CONFIG);
  const body = JSON.stringify({
    model: 'demo',
    seed: 3,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Say hello.' },
    ],
  });
  const given = exchange({ body });
  id = given.id;
  const recorder = new Recorder({ root: join(world.home, '.hopgate/samples'), mode: 'all' });
  const recording = recorder.begin(given)!;
  const sent = JSON.stringify({
    model: 'glm-4.7',
    messages: [{ role: 'user', content: 'Say hello.' }],
  });
  play(recording, { sent, answer: ['{"choices":[]}'] });
  recording.clientStart(200, new Headers({ 'content-type': 'application/json' }));
  recording.clientChunk(
    '{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}',
  );
  recording.end(
    told({
      model: 'demo',
      notes: [
        { name: 'parameter_dropped', where: 'seed' },
        { name: 'stripped_system', where: '/messages/0', what: 'the vendor knows none' },
      ],
    }),
  );
  await recorder.close();
});
afterEach(() => world.remove());

describe('what was said', () => {
  test('a search finds the exchange and shows the place; what the index has not read is read first', async () => {
    const found = await world.run(['samples', '--search', 'hello']);
    expect(found.out).toContain(id);
    expect(found.out).toMatch(/^ {4}Say hello\.$/m);
    const other = await world.run(['samples', '--search', 'goodbye']);
    expect([other.code, other.out]).toEqual([0, '']);
    const json = JSON.parse(
      (await world.run(['samples', '--search', '"Say hello"', '--json'])).out,
    );
    expect(json.samples).toMatchObject([{ id, hit: { hit: 'Say hello' } }]);
  });

  test('the table says what was asked, by whom, and what came from the cache', async () => {
    const { out } = await world.run(['samples']);
    const [head, row] = out.split('\n');
    for (const name of ['CLIENT', 'CACHED', 'ASKED']) expect(head).toContain(name);
    expect(row).toEndWith('Say hello.');
  });
});

describe('sessions', () => {
  test('none, then one line for each conversation of a client', async () => {
    const none = await world.run(['samples', 'sessions']);
    expect([none.code, none.out]).toEqual([0, '']);
    expect(none.err).toContain('names a session. Every exchange is recorded');
    const recorder = new Recorder({ root: join(world.home, '.hopgate/samples'), mode: 'all' });
    for (let i = 0; i < 2; i++) {
      const recording = recorder.begin({
        ...exchange({ body: '{"model":"demo","messages":[{"role":"user","content":"Hi"}]}' }),
        sessionId: 'a-conversation',
      })!;
      recording.clientStart(200, new Headers());
      recording.end(told({ model: 'demo', usage: { input: 20, cacheRead: 80, output: 10 } }));
    }
    await recorder.close();
    const { code, out } = await world.run(['samples', 'sessions']);
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/a-conversation .* 2 +200 +80 % +20/);
    const json = JSON.parse((await world.run(['samples', 'sessions', '--json'])).out);
    expect(json.sessions).toMatchObject([{ id: 'a-conversation', exchanges: 2 }]);
  });
});

describe('samples', () => {
  test('a table, JSON, and a word when nothing fits', async () => {
    const table = await world.run(['samples']);
    expect(table.code).toBe(0);
    expect(table.out).toContain(id);
    expect(table.out).toContain('glm/glm-4.7');
    const json = await world.run(['samples', 'list', '--status', 'ok', '--json']);
    expect(JSON.parse(json.out)).toMatchObject({ samples: [{ id, status: 200, model: 'demo' }] });
    const none = await world.run(['samples', '--status', '5xx']);
    expect(none).toMatchObject({ code: 0, out: '' });
    expect(none.err).toContain('No samples');
    // Without a filter, nothing can match: the words say what the configuration records.
    rmSync(join(world.home, '.hopgate/samples'), { recursive: true });
    world.write('.config/hopgate/hopgate.yaml', CONFIG.replace('mode: all', 'mode: errors'));
    const empty = await world.run(['samples']);
    expect(empty.err).toContain('There are no samples in');
    expect(empty.err).not.toContain('match');
    expect(empty.err.replace(/\s+/g, ' ')).toContain(
      'Only failures are recorded (samples.mode: errors)',
    );
  });

  test.each([72, 80, 100, 120])(
    'a terminal of %d columns: a failed row keeps its error, whatever else is left out',
    async (columns) => {
      const recorder = new Recorder({ root: join(world.home, '.hopgate/samples'), mode: 'all' });
      const error = new GatewayError('rate_limit', 'Too many requests.');
      const [failed, made, died] = [exchange(), exchange(), exchange()];
      const model = 'a-model-with-a-name-that-is-much-too-long-for-the-table';
      recorder.begin(failed)!.end(told({ status: 429, model, error, total: 12_345 }));
      recorder.begin(made)!.end(told({ status: 200, model, notes: [{ name: 'stripped_system' }] }));
      recorder.begin(died);
      await Bun.sleep(300);
      await recorder.close();
      Object.assign(world, { tty: true, columns });
      const { out } = await world.run(['samples', '--no-color']);
      const lines = stripVTControlCharacters(out).trimEnd().split('\n');
      expect(lines).toHaveLength(5);
      expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns);
      const row = lines.find((line) => line.includes(failed.id))!;
      expect(row).toMatch(/ 429 +rate_limit/);
      if (columns >= 80) expect(row).toMatch(/ a-model-wit/);
      expect(lines.find((line) => line.includes(died.id))).toContain('unfin');
    },
  );

  test('a folder that is not there is empty, and is not made', async () => {
    const missing = join(world.home, 'nowhere');
    const ran = await world.run(['samples', '--dir', missing, '--json']);
    expect(JSON.parse(ran.out)).toEqual({ dir: missing, samples: [] });
    expect(existsSync(missing)).toBe(false);
  });

  test('show tells the edges in order, and the notes', async () => {
    const { out } = await world.run(['samples', 'show', id.slice(-6)]);
    const order = ['client-request', 'provider-request', 'provider-response', 'client-response'];
    const places = order.map((stage) => out.indexOf(` ${stage} `));
    expect(places.every((place) => place > 0)).toBe(true);
    expect([...places].sort((a, b) => a - b)).toEqual(places);
    expect(out).toContain('stripped_system at /messages/0: the vendor knows none');
  });

  test('diff names the rule of every change that a note tells of', async () => {
    const { out } = await world.run(['samples', 'diff', id, '--json']);
    const { changes, identical } = JSON.parse(out) as {
      changes: { kind: string; at: string; rules: string[] }[];
      identical: boolean;
    };
    expect(identical).toBe(false);
    expect(changes.map(({ kind, at, rules }) => [kind, at, rules])).toEqual([
      ['changed', '/model', []],
      ['removed', '/seed', ['parameter_dropped']],
      ['removed', '/messages/0', ['stripped_system']],
    ]);
    const words = await world.run(['samples', 'diff', id]);
    expect(words.out).toContain('- /seed: 3');
    expect(words.out).toContain('by parameter_dropped');
    const same = await world.run(['samples', 'diff', id, 'client-request', 'client-request']);
    expect(same.out).toContain('byte for byte the same');
  });

  test('diff of two protocols: a short value that changed stands in one line, whole', async () => {
    const given = exchange({
      protocol: 'anthropic-messages',
      body: JSON.stringify({
        model: 'claude-opus-4-8',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Say hello.' }],
      }),
    });
    const root = join(world.home, '.hopgate/samples');
    const recorder = new Recorder({ root, mode: 'all' });
    const recording = recorder.begin(given)!;
    play(recording, {
      sent: '{"model":"glm-4.7","messages":[{"role":"user","content":"Say hello."}]}',
      answer: ['{"choices":[]}'],
    });
    recording.end(told({ model: 'claude-opus-4-8' }));
    await recorder.close();
    const { out } = await world.run(['samples', 'diff', given.id]);
    expect(out).toContain(': claude-opus-4-8 → glm-4.7\n');
    expect(out).not.toContain('- -4-8');
  });

  /** Three more samples: a stream that broke off, one whose recorder died, one that failed at once. */
  async function others() {
    const root = join(world.home, '.hopgate/samples');
    const error = new GatewayError('upstream', 'The answer broke off.');
    const recorder = new Recorder({ root, mode: 'all' });
    const [broken, died, failed, left] = [exchange(), exchange(), exchange(), exchange()];
    const first = recorder.begin(broken)!;
    play(first, { sse: true, answer: ['data: x\n\n'], error });
    first.end(told({ stream: true, error }));
    recorder.begin(failed)!.end(told({ status: 502, error }));
    recorder.begin(left)!.end(told({ status: 499 }));
    recorder.begin(died);
    await Bun.sleep(300);
    await recorder.close();
    return { broken: broken.id, died: died.id, failed: failed.id, left: left.id };
  }
  const listed = async (...argv: string[]) => {
    const { out } = await world.run(['samples', '--json', ...argv]);
    const { samples } = JSON.parse(out) as { samples: { id: string }[] };
    return samples.map((row) => row.id).toSorted();
  };

  test('an import of a sample that is here already leaves its texts as they are', async () => {
    const file = join(world.home, 'blank.json');
    await world.run(['samples', 'export', id, '--redact', '-o', file]);
    const body = async () => (await world.run(['samples', 'show', id, 'client-request'])).out;
    const before = await body();
    const { code, out, err } = await world.run(['samples', 'import', file]);
    expect({ code, out }).toEqual({ code: 0, out: `${id}\n` });
    expect(err).toContain('stays as it is');
    expect(await body()).toBe(before);
  });

  test('attempts are told only where one was repeated, beside the number of hops', async () => {
    const recorder = new Recorder({ root: join(world.home, '.hopgate/samples'), mode: 'all' });
    const [hops, repeated] = [exchange(), exchange()];
    recorder.begin(hops)!.end(told({ tries: 2, hops: 2 }));
    recorder.begin(repeated)!.end(told({ tries: 2, hops: 1 }));
    await recorder.close();
    expect((await world.run(['samples', 'show', hops.id])).out).not.toContain('attempts');
    expect((await world.run(['samples', 'show', repeated.id])).out).toMatch(
      /attempts +2 in 1 hop\n/,
    );
  });

  test('--protocol, and its older name --entry, ask for the protocol of the client', async () => {
    for (const option of ['--protocol', '--entry']) {
      expect(await listed(option, 'openai-chat')).toEqual([id]);
      expect(await listed(option, 'anthropic-messages')).toEqual([]);
    }
    expect((await world.run(['samples', 'show', id])).out).toMatch(/protocol +openai-chat\n/);
  });

  test('status "cut" finds answers that broke off, "unfinished" those whose recorder died', async () => {
    const { broken, died, failed, left } = await others();
    expect(await listed('--status', 'cut')).toEqual([broken, died].toSorted());
    expect(await listed('--status', 'unfinished')).toEqual([died]);
    expect(await listed('--status', '5xx,unfinished')).toEqual([died, failed].toSorted());
    const { out } = await world.run(['samples']);
    expect(out).toContain('unfinished');
    expect(out).toMatch(new RegExp(`${broken} +200 +cut off +m`));
    expect(out).toMatch(new RegExp(`${failed} +502 +upstream `));
    expect(out).toMatch(new RegExp(`${left} +499 +client left `));
    expect((await world.run(['samples', 'show', broken])).out).toMatch(/cut off +upstream: /);
  });

  test('a part of an id that fits several names them, one that fits none says so', async () => {
    const { broken, died, failed } = await others();
    const { code, err } = await world.run(['samples', 'show', 'req_']);
    expect(code).not.toBe(0);
    expect(err).toContain('matches more than one');
    for (const one of [id, broken, died, failed]) expect(err).toContain(one);
    const none = await world.run(['samples', 'show', 'zzzz']);
    expect(none.err).toContain('There is no sample "zzzz"');
    expect(none.err).not.toContain('more than one');
  });

  test('the body of a stage: byte for byte in a pipe, cut on a terminal unless --full', async () => {
    const shown = (...more: string[]) =>
      world.run(['samples', 'show', id, 'client-request', ...more]);
    const recorded = readFileSync(
      join(world.home, '.hopgate/samples/openai-chat', `${id}_client-request.json`),
      'utf8',
    );
    expect((await shown()).out).toBe(recorded);
    expect((await shown('--full')).out).toBe(recorded);
    world.tty = true;
    expect(JSON.parse((await shown('--full')).out)).toEqual(JSON.parse(recorded));
    expect((await shown()).out).toContain('\n  "model": "demo"');
    const unknown = await world.run(['samples', 'show', id, 'client-requst']);
    expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining('client-request')]);
  });

  test('--ids: one on each line, for shells', async () => {
    expect((await world.run(['samples', '--ids'])).out).toBe(`${id}\n`);
    expect((await world.run(['samples', 'list', '--ids'])).out).toBe(`${id}\n`);
  });

  test('an unknown note gets a did-you-mean', async () => {
    const { err } = await world.run(['samples', '--note', 'orphaned']);
    expect(err).toContain('did you mean "orphaned_tool_use_repaired"?');
    expect((await world.run(['samples', '--note', 'stripped_sytem'])).err).toContain(
      '"stripped_system"',
    );
    for (const known of ['orphaned_tool_use_repaired', 'orph*']) {
      expect((await world.run(['samples', '--note', known])).err).not.toContain('There is no note');
    }
  });

  test('keys that this shell does not have are neither needed to read samples nor reported', async () => {
    const path = world.write(
      'keys.yaml',
      `providers:
  far: { protocol: openai-chat, base_url: "https://far.test/v1", keys: "\${FAR_KEY}", models: ["*"] }
auth: { keys: ["\${GATE_KEY}"] }
`,
    );
    for (const argv of [['samples'], ['samples', 'show', id]]) {
      const { code, err } = await world.run([...argv, '--config', path]);
      expect([code, err]).toEqual([0, '']);
    }
    world.write('keys.yaml', 'providers: { far: { protocol: nothing } }');
    expect((await world.run(['samples', '--config', path])).code).toBe(1);
  });

  test('wrong usage says what was meant', async () => {
    for (const [argv, words] of [
      [['samples', 'shwo'], 'is one of'],
      [['samples', 'show'], 'needs the id'],
      [['samples', 'show', 'req_1_nothing'], 'There is no sample'],
      [['samples', '--status', 'bad'], 'is not a status'],
      [['samples', '--since', 'yesterday-ish'], 'is not a time'],
      [['samples', 'import'], 'needs a file'],
      [['replay'], 'needs an id'],
      [['replay', '--last', '2', '--where', 'colour=red'], 'is not a condition'],
      [['replay', id, '--compare', 'nonsense'], 'is no setting'],
      [['replay', id, '--compare', 'limitz.x=1', 'repair=on'], 'There is no setting'],
      [['replay', id, '--edge', 'provider-response'], 'has no request'],
      [['bisect', id, '--budget', '0'], 'needs a whole number'],
    ] as const) {
      const { code, err } = await world.run([...argv]);
      expect([argv, code]).toEqual([argv, 2]);
      expect(err).toContain(words);
    }
  });
});

describe('replay', () => {
  test('several targets are columns with both answers, an edit is sent, and the cost is told before', async () => {
    const ran = await world.run(['replay', id, '--to', 'demo/a,demo/b', '--edit', 'temperature=0']);
    expect(ran.code).toBe(0);
    expect(ran.err).toContain('Sends 2 requests: demo/a (price unknown), demo/b (price unknown).');
    expect(ran.out).toContain('The recorded answer');
    expect(ran.out).toContain('The new answer of demo/a');
    expect(ran.out).toContain('The new answer of demo/b');
  });

  test('a bad edit is told in words, and nothing is sent', async () => {
    const ran = await world.run(['replay', id, '--edit', 'temperature=hot']);
    expect(ran.code).toBe(2);
    expect(ran.err).toContain('temperature must be a number from 0 to 2, not "hot".');
    expect(ran.out).toBe('');
  });

  test('bisect of an exchange that did not fail sends nothing unless it is told to', async () => {
    const ran = await world.run(['bisect', id]);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain('did not fail when it was recorded');
    expect(ran.err).not.toContain('smallest so far');
  });

  test('sends through a gateway in this process: table, tokens, what was before', async () => {
    const { code, out } = await world.run(['replay', id, '--json', '--repeat', '2']);
    expect(code).toBe(0);
    const { runs, settings } = JSON.parse(out) as {
      runs: { prompt_tokens: number }[];
      settings: unknown[];
    };
    expect(runs).toMatchObject([
      {
        sample: id,
        run: 1,
        status: 200,
        error: null,
        target: 'demo/demo',
        recorded: { status: 200, error: null, ms: expect.any(Number), answer: expect.any(String) },
        answer: expect.stringMatching(/./),
      },
      { run: 2, status: 200 },
    ]);
    expect(runs[0]!.prompt_tokens).toBeGreaterThan(0);
    expect(settings).toMatchObject([{ runs: 2, failed: 0, failure_rate: 0 }]);
    const table = await world.run(['replay', id]);
    expect(table.out.split('\n')[0]).toMatch(
      /SAMPLE +BEFORE +STATUS +ERROR +PROMPT +OUTPUT +COST +FIRST +TIME +TARGET/,
    );
    // What was said is there to be read, then and now.
    const { answer } = (JSON.parse(out) as { runs: { answer: string }[] }).runs[0]!;
    expect(table.out).toContain('answer');
    expect(table.out).toContain(answer.split('\n')[0]!);
  });

  test('a member of the body, a target and repairs can be compared', async () => {
    const { out } = await world.run([
      'replay',
      id,
      '--json',
      '--repeat',
      '3',
      '--compare',
      'body.messages=[]',
      'to=demo/other',
    ]);
    const { runs, settings, p, more_than_chance } = JSON.parse(out) as {
      runs: { setting: string; target: string }[];
      settings: { setting: string; failed: number }[];
      p: number;
      more_than_chance: boolean;
    };
    expect(settings.map(({ setting, failed }) => [setting, failed])).toEqual([
      ['body.messages=[]', 3],
      ['to=demo/other', 0],
    ]);
    expect(p).toBeCloseTo(0.1, 5);
    expect(more_than_chance).toBe(false);
    expect(runs.at(-1)!.target).toBe('demo/other');
    const words = await world.run([
      'replay',
      id,
      '--repeat',
      '5',
      '--compare',
      'body.messages=[]',
      'repair=off',
    ]);
    expect(words.out).toContain('the difference is more than chance');
  });

  test('nothing of it is recorded', async () => {
    await world.run(['replay', id]);
    const { out } = await world.run(['samples', '--json']);
    expect((JSON.parse(out) as { samples: unknown[] }).samples).toHaveLength(1);
  });

  test('a file with any body, and a file of the folder, are sent as what they are', async () => {
    const file = world.write(
      'body.json',
      '{"model":"demo/x","max_tokens":9,"system":"s","messages":[{"role":"user","content":"hi"}]}',
    );
    const plain = await world.run(['replay', file, '--json']);
    expect(JSON.parse(plain.out)).toMatchObject({
      runs: [{ sample: 'body.json', status: 200, target: 'demo/x' }],
    });
    const stored = join(world.home, '.hopgate/samples/openai-chat', `${id}_provider-request.json`);
    const before = readFileSync(stored, 'utf8');
    const straight = await world.run(['replay', stored, '--to', 'demo/glm-4.7', '--json']);
    expect(JSON.parse(straight.out)).toMatchObject({
      runs: [{ sample: id, status: 200, target: 'demo/glm-4.7' }],
    });
    expect(readFileSync(stored, 'utf8')).toBe(before);
  });
});

describe('bisect', () => {
  test('a request that does not fail: exit 1, and no more than six were sent', async () => {
    const { code, out } = await world.run(['bisect', id, '--to', 'demo/demo', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ result: 'does-not-fail', probes: 6, cause: null });
  });

  test('a request in a file that is refused: the field at fault, both requests as samples', async () => {
    const vendor = Bun.serve({
      port: 0,
      async fetch(request) {
        const body = (await request.json()) as { temperature?: number };
        if (body.temperature !== undefined) {
          return Response.json(
            { error: { message: `Bad temperature (request ${crypto.randomUUID()})` } },
            { status: 400 },
          );
        }
        const message = { role: 'assistant', content: 'hi' };
        return Response.json({
          id: 'x',
          object: 'chat.completion',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
        });
      },
    });
    try {
      const provider = `  v: { protocol: openai-chat, base_url: "http://127.0.0.1:${vendor.port}", models: [m] }`;
      world.write(
        '.config/hopgate/hopgate.yaml',
        CONFIG.replace('samples:', `${provider}\nsamples:`),
      );
      const messages = [{ role: 'user', content: 'Tell me something about the sea, please.' }];
      const file = world.write(
        'bad.json',
        JSON.stringify({ model: 'm', temperature: 7, top_p: 1, messages }),
      );
      const { code, out } = await world.run(['bisect', file, '--json']);
      const report = JSON.parse(out) as {
        samples: { minimal: string; passing: string };
        words: string;
      };
      expect(code).toBe(0);
      expect(report).toMatchObject({
        result: 'minimal',
        cause: { at: '/temperature', bytes: 1 },
        minimal: { model: 'm', temperature: 7 },
        failure: { how: 'error' },
      });
      expect(report.words).toContain('the field temperature');
      const { out: listed } = await world.run(['samples', '--json']);
      const rows = (JSON.parse(listed) as { samples: { id: string; status: number }[] }).samples;
      expect(rows.find((row) => row.id === report.samples.minimal)?.status).toBe(400);
      expect(rows.find((row) => row.id === report.samples.passing)?.status).toBe(200);
      // What was needed on the way is gone.
      expect(readdirSync(join(world.home, '.hopgate/bisect'))).toEqual([]);
    } finally {
      await vendor.stop(true);
    }
  });
});

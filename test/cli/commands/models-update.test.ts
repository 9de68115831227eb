/** `hopgate models update`: a signed, newer file is taken over whole; anything else is refused whole, with the reason. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signedText } from '../../../scripts/sign-models.ts';
import { environmentFrom } from '../../../src/config/environment.ts';
import { loadConfig } from '../../../src/config/load.ts';
import {
  cataloguePrice,
  modelsDate,
  shippedText,
  useModelsFile,
} from '../../../src/config/models/model-facts.ts';
import { problemOfModels } from '../../../src/config/models/model-schema.ts';
import { rawPublicKey, trustModelsKey } from '../../../src/config/models/models-file.ts';
import { liveConfig } from '../../../src/config/reload.ts';
import { createWorld, type World } from '../world.ts';

/** Made for this run: it signs nothing but files of tests. */
const { privateKey, publicKey } = generateKeyPairSync('ed25519');

let world: World;
beforeEach(() => {
  trustModelsKey(rawPublicKey(publicKey));
  world = createWorld();
});
afterEach(() => {
  trustModelsKey();
  useModelsFile(undefined);
  world.remove();
});

const LINES = [
  { format: 1, date: '2027-01-02' },
  { rule: 'gpt-*', for: 'openai', facts: { maxStops: 3 } },
  { vendor: 'openai' },
  {
    id: 'gpt-9',
    context: 1000,
    usd: { input: 7, output: 8, tiers: [{ above: 10, input: 9 }] },
    can: 't',
  },
];
const fileOf = (lines: readonly unknown[]) =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('');
const signed = (lines: readonly unknown[] = LINES) => signedText(fileOf(lines), privateKey);
const kept = () => join(world.home, '.hopgate', 'models.jsonl');

test('the file that comes with the program is one', () => {
  expect(problemOfModels(shippedText())).toBeUndefined();
});

test('a file is taken over, and commands answer by it', async () => {
  world.write('new.jsonl', signed());
  const { code, out } = await world.run(['models', 'update', 'new.jsonl']);
  expect([code, out]).toEqual([0, expect.stringContaining('model facts of 2027-01-02')]);
  const config = world.write('hopgate.yaml', 'providers: { openai: { keys: [k] } }');
  await world.run(['check', '--config', config]);
  expect(modelsDate()).toBe('2027-01-02');
  expect(cataloguePrice('openai', 'gpt-9')).toMatchObject({ input: 7 });
});

test.each([
  [['models', 'update', '/dev/zero'], 'it has more than 5242880 bytes'],
  [['lint', '/dev/zero'], 'cannot be read'],
  [['models', '--explain', '@/dev/zero'], 'cannot be read'],
])('a device without an end is not read to it: %j', async (words, why) => {
  const { code, err } = await world.run(words);
  expect(code).not.toBe(0);
  expect(err).toContain(why);
});

test('a URL is fetched, and nothing is fetched unless asked', async () => {
  const asked: string[] = [];
  world.fetch = (async (url: string) => {
    asked.push(String(url));
    return new Response(signed());
  }) as unknown as typeof fetch;
  await world.run(['models', '--offline']);
  expect(asked.filter((url) => !url.startsWith('http://127.0.0.1'))).toEqual([]);
  asked.length = 0;
  const { code } = await world.run(['models', 'update', 'https://facts.test/models.jsonl']);
  expect([code, asked]).toEqual([0, ['https://facts.test/models.jsonl']]);
});

describe('refused whole, the old one stays', () => {
  const more = (line: unknown) => [...LINES, line];
  const BAD: readonly (readonly [string, () => string, string])[] = [
    ['no signature', () => fileOf(LINES), 'signature'],
    [
      'another key',
      () => signedText(fileOf(LINES), generateKeyPairSync('ed25519').privateKey),
      'signature',
    ],
    ['a byte changed', () => signed().replace('"input":7', '"input":1'), 'signature'],
    ['a line added behind it', () => `${signed()}{"id":"x"}\n`, 'signature'],
    [
      'an older date',
      () => signed([{ format: 1, date: '2026-01-02' }, ...LINES.slice(1)]),
      'older',
    ],
    ['no date', () => signed([{ format: 1 }, ...LINES.slice(1)]), 'date'],
    [
      'a day that is none',
      () => signed([{ format: 1, date: '2027-02-31' }, ...LINES.slice(1)]),
      'calendar',
    ],
    [
      'a later form',
      () => signed([{ format: 2, date: '2027-01-02' }, ...LINES.slice(1)]),
      'format',
    ],
    [
      'an unknown field of a model',
      () => signed(more({ id: 'x', colour: 'red' })),
      'line 5: colour unknown key',
    ],
    [
      'an unknown field of a price',
      () => signed(more({ id: 'x', usd: { input: 1, output: 1, gold: 1 } })),
      'gold',
    ],
    [
      'an unknown fact of a rule',
      () => signed([LINES[0], { rule: 'a', for: 'b', facts: { odd: 1 } }, ...LINES.slice(2)]),
      'odd',
    ],
    [
      'a price as text',
      () => signed(more({ id: 'x', usd: { input: '1', output: 1 } })),
      'usd.input',
    ],
    [
      'hours that are none',
      () =>
        signed(more({ id: 'x', usd: { input: 1, output: 1, tiers: [{ time: '25:00-26:00' }] } })),
      'usd.tiers.0.time',
    ],
    [
      'hours in a time zone that is none',
      () =>
        signed(
          more({ id: 'x', usd: { input: 1, output: 1, tiers: [{ time: { zone: 'Mars' } }] } }),
        ),
      'time zone',
    ],
    [
      'a factor of a region as text',
      () => signed(more({ id: 'x', usd: { input: 1, output: 1, regions: { eu: '1.1' } } })),
      'usd.regions.eu',
    ],
    [
      'free searches of another period',
      () =>
        signed(
          more({ id: 'x', usd: { input: 1, output: 1, free_searches: { count: 1, per: 'hour' } } }),
        ),
      'free_searches.per',
    ],
    ['a price of null', () => signed(more({ id: 'x', usd: { input: null, output: 1 } })), 'usd'],
    [
      'a price below nothing',
      () => signed(more({ id: 'x', usd: { input: -1, output: 1 } })),
      'usd.input',
    ],
    ['a price without output', () => signed(more({ id: 'x', usd: { input: 1 } })), 'output'],
    ['a line that is no JSON', () => signedText(`${fileOf(LINES)}{"id":\n`, privateKey), 'line 5'],
    ['a line of another kind', () => signed(more({ what: 1 })), 'line 5'],
    ['a model before a vendor', () => signed([LINES[0], LINES[3]]), 'without vendor'],
    ['nothing', () => '', 'signature'],
  ];
  test.each(BAD)('%s', async (_what, text, reason) => {
    world.write('good.jsonl', signed([{ format: 1, date: '2027-01-01' }, ...LINES.slice(1)]));
    await world.run(['models', 'update', 'good.jsonl']);
    const before = readFileSync(kept(), 'utf8');
    world.write('bad.jsonl', text());
    const { code, err } = await world.run(['models', 'update', 'bad.jsonl']);
    expect([code, err]).toEqual([1, expect.stringContaining(reason)]);
    expect(err).toContain('The facts of 2027-01-01 stay.');
    expect(readFileSync(kept(), 'utf8')).toBe(before);
  });

  test('a file that is not there, and an answer that is none', async () => {
    const { code } = await world.run(['models', 'update', 'nowhere.jsonl']);
    world.fetch = (async () => new Response('no', { status: 404 })) as unknown as typeof fetch;
    const { code: fetched, err } = await world.run(['models', 'update', 'https://facts.test/x']);
    expect([code, fetched, existsSync(kept())]).toEqual([1, 1, false]);
    expect(err).toContain('404');
  });
});

test('a file in the home that no release has signed is not used, and doctor tells', async () => {
  world.write('.hopgate/models.jsonl', fileOf(LINES));
  const config = world.write('hopgate.yaml', 'providers: { openai: { keys: [k] } }');
  const { out } = await world.run(['doctor', '--config', config, '--no-completion', '--json']);
  const { findings } = JSON.parse(out) as {
    findings: { about: string; status: string; message: string }[];
  };
  const models = findings.find(({ about }) => about === 'models')!;
  expect(models.status).toBe('warn');
  expect(models.message).toContain('signature');
  expect(models.message).toMatch(/\d days? old/);
});

test.each(['after', 'before'])(
  'a running gateway takes it over without a restart, %s it watches',
  async (when) => {
    const environment = environmentFrom(world.variables, world.home);
    const path = world.write('hopgate.yaml', 'providers: { openai: { keys: [k] } }');
    world.write('.hopgate/.keep', '');
    const options = { path, environment };
    const loaded = await loadConfig(options);
    if (!loaded.ok) throw new Error('no configuration');
    const live = liveConfig(loaded.config, options);
    expect(modelsDate()).not.toBe('2027-01-02');
    if (when === 'before') writeFileSync(kept(), signed());
    const reloaded = new Promise<void>((resolve) => {
      live.watch(() => resolve(), { debounceMs: 1, pollMs: 5 });
    });
    if (when === 'after') writeFileSync(kept(), signed());
    await reloaded;
    live.close();
    expect(modelsDate()).toBe('2027-01-02');
  },
);

test('check warns of models that are gone, end, or are newer than the facts, and asks nobody', async () => {
  const config = world.write(
    'hopgate.yaml',
    `providers:
  deepseek: { keys: [k], models: [deepseek-chat, deepseek-v4-flash] }
  anthropic: { keys: [k], models: [claude-opus-6, "claude-*"] }
routes: [{ to: [deepseek/deepseek-reasoner] }]
`,
  );
  const { code, err } = await world.run(['check', '--config', config]);
  expect(code).toBe(0);
  expect(err).toContain(
    'deepseek/deepseek-chat is gone since 2026-07-24: deepseek-v4-flash is its successor',
  );
  expect(err).toContain('deepseek/deepseek-reasoner is gone');
  expect(err).toContain('anthropic/claude-opus-6 is newer than the model facts');
  expect(err).toContain('as claude-opus-5-5');
  expect(err).not.toContain('deepseek-v4-flash is gone');
});

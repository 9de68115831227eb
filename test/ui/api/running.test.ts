/** An agent that waits, or that is being answered, is seen while it is: in the list, live and by the commands, in every mode. */

import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { runningExchanges } from '../../../src/cli/running-gateway.ts';
import type { Config } from '../../../src/config/config.ts';
import type {
  ConversationView,
  LiveEvent,
  SamplesPage,
  Stories,
  UiRow,
} from '../../../src/ui/api/api.ts';
import { threeProviders } from '../../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { until } from '../../support/until.ts';
import { client, eventsIn } from '../api-setup.ts';

setDefaultTimeout(60_000);

const SECRET = 'sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJ';

const MODES = {
  'the default mode': undefined,
  'mode errors': 'errors',
  'mode all': 'all',
  'mode off': 'off',
};
const ANSWERS = {
  'that waits for its first byte': { delivery: { firstByteMs: 120_000 } },
  'that is being streamed': { delivery: { cut: { at: 2, by: 'hang' as const } } },
};

let upstream: FakeUpstream;
let gateway: InProcess;
let gone: AbortController;
beforeEach(async () => {
  upstream = await startFakeUpstream();
  gone = new AbortController();
});
afterEach(async () => {
  gone.abort();
  await gateway.stop();
  await upstream.stop();
});

const start = async (mode: string | undefined) => {
  const { samples: _, ...config } = threeProviders(upstream) as { samples?: unknown };
  gateway = await startInProcess({ ...config, ...(mode !== undefined && { samples: { mode } }) });
};

const ask = (text = 'Hi.') => {
  void fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'via-chat',
      stream: true,
      messages: [{ role: 'user', content: text }],
    }),
    signal: gone.signal,
  })
    .then((response) => response.text())
    .catch(() => '');
};

const listed = async (query = ''): Promise<readonly UiRow[]> =>
  (await client(gateway).json<SamplesPage>(`samples?${query}`)).rows;

describe.each(Object.entries(MODES))('in %s', (_, mode) => {
  test.each(Object.entries(ANSWERS))('an exchange %s is seen', async (_, more) => {
    upstream.answerWith(() => say('Some words that take their time.', more));
    await start(mode);
    const live = eventsIn<LiveEvent>(await client(gateway).api('live'));
    await live.next();
    ask();
    const [row] = await until(async () => {
      const rows = await listed('status=open');
      return rows[0]?.target === 'chat/m1' && rows;
    });
    expect(row).toMatchObject({ state: 'open', model: 'via-chat', status: 0 });
    expect((await listed()).map(({ id }) => id)).toEqual([row!.id]);
    expect(await listed('status=ok,failed')).toEqual([]);
    const told = (await live.next()).value as LiveEvent;
    expect(told).toMatchObject({ type: 'row', row: { id: row!.id, state: 'open' } });
    const detail = await client(gateway).api(`samples/${row!.id}`);
    expect(detail.status).toBe(200);
    const { stories } = await client(gateway).json<Stories>(`stories?ids=${row!.id}`);
    expect(stories).toMatchObject([{ asked: 'Hi.' }]);
    const { port } = new URL(gateway.url);
    const config = {
      listen: { host: '127.0.0.1', port: Number(port) },
      auth: { keys: [], adminKeys: [] },
    } as unknown as Config;
    expect((await runningExchanges(config, fetch)).map(({ id }) => id)).toEqual([row!.id]);
    gone.abort();
    await until(async () => (await listed('status=open')).length === 0);
    await live.return(undefined);
  });
});

test('its words so far can be read while nothing of it is on disk, and credentials in them are masked', async () => {
  upstream.answerWith(() =>
    say('Some words that take their time.', { delivery: { piece: 5, paceMs: 200 } }),
  );
  await start(undefined);
  ask(`My key is ${SECRET}.`);
  const [row] = await until(async () => {
    const rows = await listed('status=open');
    return rows[0]?.target === 'chat/m1' && rows;
  });
  const textOf = async (stage: string) => {
    const { turns } = await client(gateway).json<ConversationView>(
      `samples/${row!.id}/edges/${stage}/conversation`,
    );
    return turns.flatMap(({ blocks }) => blocks.map((one) => ('text' in one ? one.text : '')));
  };
  const [asked] = await textOf('client-request');
  expect(asked).toStartWith('My key is ');
  expect(asked).not.toContain(SECRET);
  const answered = async () => (await textOf('client-response').catch(() => [])).join('');
  const first = await until(answered);
  expect('Some words that take their time.').toStartWith(first);
  await until(async () => (await answered()).length > first.length);
});

test('one that hangs stays in the list while many others come and go, and no mode keeps them', async () => {
  upstream.answerWith(({ body }) =>
    say('Fine.', {
      delivery: { firstByteMs: JSON.stringify(body).includes('hang') ? 120_000 : 0 },
    }),
  );
  await start('off');
  ask('hang');
  const [first] = await until(async () => {
    const rows = await listed('status=open');
    return rows.length === 1 && rows;
  });
  const post = () =>
    client(gateway).post('/v1/chat/completions', {
      model: 'via-chat',
      messages: [{ role: 'user', content: 'Hi.' }],
    });
  for (let round = 0; round < 4; round++) {
    await Promise.all(Array.from({ length: 20 }, post));
    await Bun.sleep(1000);
  }
  expect((await listed('status=open')).map(({ id }) => id)).toEqual([first!.id]);
});

/** From one machine to engines and back, as a person does it: the gateway, the command, the gateway again; clients notice nothing. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createWorld, type World } from '../cli/world.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import {
  HAS_OBJECTS,
  OBJECTS_KEY,
  OBJECTS_SECRET,
  type ObjectServer,
  startObjects,
} from '../support/engines/object-servers.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';

describe.skipIf(!HAS_POSTGRES || !HAS_OBJECTS)('a gateway whose state is moved', () => {
  let database: DatabaseServer;
  let objects: ObjectServer;
  let vendor: ReturnType<typeof Bun.serve>;
  let world: World;
  let home: string;
  let gateway: InProcess | undefined;
  const asked: string[] = [];
  beforeAll(async () => {
    [database, objects] = await Promise.all([startPostgres(), startObjects()]);
    vendor = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        asked.push(await request.text());
        const message = { role: 'assistant', content: `answer ${asked.length}` };
        return Response.json({
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm1',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
        });
      },
    });
    world = createWorld();
    home = join(world.home, 'own');
    world.variables.HOPGATE_HOME = home;
  });
  afterAll(async () => {
    await gateway?.stop();
    await vendor.stop(true);
    world.remove();
    await Promise.all([database.stop(), objects.stop()]);
  });

  const config = (withEngines: boolean) => ({
    providers: {
      vendor: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vendor.port}/v1`,
        keys: ['sk-upstream'],
        models: ['m1'],
      },
    },
    samples: { mode: 'all' },
    ...(withEngines && {
      engines: {
        database: database.url,
        objects: `s3://${OBJECTS_KEY}:${OBJECTS_SECRET}@${objects.bucket}/moved?region=us-east-1&endpoint=${objects.endpoint}`,
        seal: ['the secret of this test, long enough to seal'],
      },
    }),
  });
  async function restart(withEngines: boolean): Promise<void> {
    await gateway?.stop();
    gateway = await startInProcess(config(withEngines), home);
  }
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${gateway!.url}${path}`, {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const respond = async (input: string, previous?: unknown) => {
    const { status, body } = await call('POST', '/v1/responses', {
      model: 'm1',
      input,
      ...(previous !== undefined && { previous_response_id: previous }),
    });
    expect([status, body.status]).toEqual([200, 'completed']);
    return body.id;
  };
  async function move(to: string): Promise<Record<string, number>> {
    const file = world.write('hopgate.yaml', JSON.stringify(config(true)));
    const ran = await world.run(['state', 'move', '--to', to, '--json', '--config', file]);
    expect([ran.err, ran.code]).toEqual(['', 0]);
    const { state } = JSON.parse(ran.out) as { state: { name: string; copied: number }[] };
    return Object.fromEntries(state.map(({ name, copied }) => [name, copied]));
  }
  /** What doctor warns of. */
  async function lacking(): Promise<readonly string[]> {
    const file = world.write('doctor.yaml', JSON.stringify(config(true)));
    const ran = await world.run(['doctor', '--no-completion', '--json', '--config', file]);
    const { findings } = JSON.parse(ran.out) as {
      findings: { about: string; status: string; message: string }[];
    };
    return findings
      .filter(({ about, status }) => about === 'state' && status !== 'ok')
      .map(({ message }) => message);
  }
  const remembered = async () => {
    const { body } = await call('GET', '/v1/memory/ann/events?limit=100');
    return (body.events as { text: string }[]).map(({ text }) => text).toSorted();
  };
  const remember = async (text: string) => {
    expect((await call('POST', '/v1/memory/ann/events', { text })).status).toBe(201);
  };
  const recorded = async (withEngines: boolean) => {
    const file = world.write('list.yaml', JSON.stringify(config(withEngines)));
    const ran = await world.run(['samples', 'list', '--ids', '--config', file]);
    return ran.out.trim().split('\n').filter(Boolean).length;
  };

  test('there: before the restart, and again after it; and back', async () => {
    await restart(false);
    const first = await respond('the first question');
    await remember('kept before');
    await gateway!.stop();
    gateway = undefined;
    await restart(false);
    // The gateway runs, and goes on after the copy.
    expect((await lacking())[0]).toMatch(
      /1 row, 1 response and 1 memory event of this machine are not in the engines$/,
    );
    expect(await move('engines')).toMatchObject({ spend: 1, responses: 1, memory: 1, samples: 1 });
    expect(await lacking()).toEqual([]);
    const second = await respond('the second question', first);
    await remember('kept between');

    await restart(true);
    // What the folder has is uploaded by the gateway itself, and the command waits for it.
    const { samples, ...rest } = await move('engines');
    expect(rest).toMatchObject({ responses: 1, memory: 1 });
    expect(samples).toBeLessThanOrEqual(1);
    expect(await lacking()).toEqual([]);
    const third = await respond('the third question', second);
    for (const words of ['first', 'second', 'third']) expect(asked.at(-1)).toContain(words);
    expect(await lacking()).toEqual([]);
    expect(await remembered()).toEqual(['kept before', 'kept between']);
    await remember('kept there');
    // The files of before have done their duty, and another machine would have none.
    await gateway!.stop();
    gateway = undefined;
    const uploaded = await move('engines');
    expect(uploaded).toMatchObject({ responses: 0, memory: 0 });
    rmSync(home, { recursive: true });

    const all = { spend: 3, responses: 3, memory: 3, samples: 3 };
    expect(await move('embedded')).toMatchObject(all);
    await restart(false);
    await respond('the fourth question', third);
    for (const words of ['first', 'second', 'third', 'fourth']) {
      expect(asked.at(-1)).toContain(words);
    }
    expect(await remembered()).toEqual(['kept before', 'kept between', 'kept there']);
    await until(async () => (await recorded(false)) === 4);
  });
});

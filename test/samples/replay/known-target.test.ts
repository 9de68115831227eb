/** A request goes to the named target or nowhere: an unknown name is refused before anything is sent. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { checkTarget } from '../../../src/samples/replay/known-target.ts';
import { createWorld, type World } from '../../cli/world.ts';
import { good } from '../../config/support.ts';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream/index.ts';

let setup: World;
let vendor: FakeUpstream;
beforeEach(async () => {
  setup = createWorld();
  vendor = await startFakeUpstream();
});
afterEach(async () => {
  setup.remove();
  await vendor.stop();
});

const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });

const file = (url: string) => `providers:
  glm: { protocol: openai-chat, base_url: "${url}/v1", models: [glm-4.7, "glm-5*"] }
  any: { protocol: openai-chat, base_url: "${url}/v1", models: ["*"] }
routes:
  - when: { model: side }
    to: [glm/side-model]
  - to: [glm/glm-4.7]
`;

describe('a target that is not configured', () => {
  const cases: readonly (readonly [to: string, words: string])[] = [
    ['nope/x', 'There is no provider "nope". Configured: glm, any.'],
    ['gml/glm-4.7', 'There is no provider "gml". Did you mean "glm"?'],
    ['glm/glm-47', 'does not list the model "glm-47". Did you mean "glm/glm-4.7"?'],
    ['glm/other', 'does not list the model "other". It lists glm-4.7, glm-5*.'],
    ['glm', '"glm" is not a target: write provider/model. Did you mean "glm/MODEL"?'],
    ['glm/', 'is not a target'],
    ['__proto__/x', 'There is no provider "__proto__"'],
  ];
  for (const [to, message] of cases) {
    test(`${to} is refused by replay, compare and bisect, and nothing is sent`, async () => {
      const config = setup.write('hopgate.yaml', file(vendor.origin));
      const body = setup.write('request.json', BODY);
      for (const args of [
        ['replay', body, '--to', to],
        ['replay', body, '--compare', `to=${to}`, 'to=glm/glm-4.7'],
        ['bisect', body, '--to', to],
      ]) {
        const { code, err } = await setup.run([...args, '--config', config]);
        expect([args, code, err]).toEqual([args, 2, expect.stringContaining(message)]);
      }
      expect(vendor.received).toHaveLength(0);
    });
  }

  test('the demo model does not stand in for an unknown provider', async () => {
    const body = setup.write('request.json', BODY);
    const { code, err } = await setup.run(['replay', body, '--to', 'nope/x']);
    expect([code, err]).toEqual([2, expect.stringContaining('There is no provider "nope"')]);
  });

  test('a recorded target whose provider is gone is refused as well', async () => {
    const config = setup.write('hopgate.yaml', file(vendor.origin));
    const sample = {
      hopgate_sample: 1,
      meta: {
        id: 'req_1_gone',
        time: 1,
        entry: 'openai-chat',
        state: 'done',
        status: 500,
        target: 'gone/x',
        edges: [
          { stage: 'client-request', file: 'a.json', bytes: 1 },
          { stage: 'provider-request', file: 'b.json', bytes: 1, target: 'gone/x' },
        ],
        notes: [],
        masked: 0,
      },
      files: [
        { stage: 'client-request', text: BODY },
        { stage: 'provider-request', text: BODY },
      ],
    };
    const path = setup.write('sample.json', JSON.stringify(sample));
    for (const args of [
      ['replay', path, '--edge', 'provider-request'],
      ['bisect', path],
    ]) {
      const { code, err } = await setup.run([...args, '--config', config]);
      expect([args, code, err]).toEqual([args, 2, expect.stringContaining('no provider "gone"')]);
    }
    expect(vendor.received).toHaveLength(0);
  });
});

test('names in a list, a glob, a star or a route are accepted', () => {
  const config = good(file('http://127.0.0.1:1'));
  for (const to of ['glm/glm-4.7', 'glm/glm-5.1', 'any/what/ever', 'glm/side-model']) {
    expect(() => checkTarget(to, config)).not.toThrow();
  }
});

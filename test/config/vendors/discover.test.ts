/** Providers that are discovered when nothing is configured. */

import { describe, expect, test } from 'bun:test';
import type { Config } from '../../../src/config/config.ts';
import { type Fetch, loadConfig } from '../../../src/config/load.ts';
import { liveConfig, type ReloadResult } from '../../../src/config/reload.ts';
import { PROFILES, presetNames, presetOf } from '../../../src/vendors/index.ts';
import { until } from '../../support/until.ts';
import { config, env, parse } from '../support.ts';

const list = (...ids: string[]) =>
  Response.json({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) });

/** Answers by port; every other port refuses. */
const servers = (answers: Record<number, () => Response | Promise<Response>>): Fetch => {
  return async (url) => {
    const answer = answers[Number(new URL(url).port)];
    if (answer === undefined) throw new TypeError('connection refused');
    return answer();
  };
};

async function found(variables: Record<string, string>, fetch?: Fetch): Promise<Config> {
  // A home without a file; the machine's own /etc file would be found, which no test machine has.
  const home = { HOME: '/nonexistent', ...variables };
  return config(await loadConfig({ environment: env(home), fetch }));
}

const requests: string[] = [];
const names = (of: Config) => Object.keys(of.providers);

describe('keys in the environment', () => {
  test.each([
    ['OPENAI_API_KEY', 'openai', 'https://api.openai.com/v1'],
    ['ANTHROPIC_API_KEY', 'anthropic', 'https://api.anthropic.com'],
    ['ZHIPU_API_KEY', 'glm', 'https://open.bigmodel.cn/api/paas/v4'],
    ['ZAI_API_KEY', 'zai', 'https://api.z.ai/api/paas/v4'],
    ['DEEPSEEK_API_KEY', 'deepseek', 'https://api.deepseek.com'],
    ['MOONSHOT_API_KEY', 'kimi', 'https://api.moonshot.ai/v1'],
    ['DASHSCOPE_API_KEY', 'qwen', 'https://dashscope.aliyuncs.com/compatible-mode/v1'],
    ['OPENROUTER_API_KEY', 'openrouter', 'https://openrouter.ai/api/v1'],
    ['GROQ_API_KEY', 'groq', 'https://api.groq.com/openai/v1'],
    ['MISTRAL_API_KEY', 'mistral', 'https://api.mistral.ai/v1'],
    ['XAI_API_KEY', 'xai', 'https://api.x.ai/v1'],
    ['GEMINI_API_KEY', 'gemini', 'https://generativelanguage.googleapis.com/v1beta'],
    ['MINIMAX_API_KEY', 'minimax', 'https://api.minimax.io/v1'],
    ['TOGETHER_API_KEY', 'together', 'https://api.together.xyz/v1'],
  ])('%s makes the provider %s', async (variable, name, baseUrl) => {
    const of = await found({ [variable]: 'k-1' });
    expect(of.source.kind).toBe('discovered');
    expect(names(of)[0]).toBe(name);
    expect(of.providers[name]).toMatchObject({ baseUrl });
    expect(of.providers[name]!.keys.map((key) => key.reveal())).toEqual(['k-1']);
    expect(of.routes.at(-1)).toMatchObject({ to: [{ target: `${name}/*` }] });
  });

  test('both protocols of OpenAI are available, so that a Chat client needs no conversion', async () => {
    const of = await found({ OPENAI_API_KEY: 'k' });
    expect(of.providers['openai-chat']).toMatchObject({ protocol: 'openai-chat' });
    expect(of.providers.openai).toMatchObject({ protocol: 'openai-responses' });
  });

  test('a file without providers keeps its other settings, and its routes', async () => {
    const text = 'workers: 2\nroutes: [{ to: [glm/glm-4.7] }]\n';
    const result = parse(text, { ZHIPU_API_KEY: 'k' });
    const of = config(result);
    expect(of.workers).toBe(2);
    expect(of.source).toEqual({ kind: 'discovered', path: '/c/hopgate.yaml' });
    expect(of.routes).toHaveLength(1);
  });
});

describe('servers on this machine', () => {
  test('all four are found at their ports, with their models', async () => {
    const of = await found(
      {},
      servers({
        11434: () => list('llama3:8b', 'qwen3:4b'),
        1234: () => list('a'),
        8080: () => list('b'),
        8000: () => list('c'),
      }),
    );
    expect(names(of)).toEqual(['ollama', 'lmstudio', 'llamacpp', 'vllm']);
    expect(of.providers.ollama).toMatchObject({
      baseUrl: 'http://127.0.0.1:11434/v1',
      models: ['llama3:8b', 'qwen3:4b'],
      keys: [],
      profile: { name: 'ollama' },
    });
    expect(of.routes.find((route) => route.name.includes('agents'))!.to).toEqual([
      { target: 'ollama/llama3:8b' },
    ]);
  });

  test.each([
    ['a page', () => new Response('<html>hello</html>')],
    ['other JSON', () => Response.json({ ok: true })],
    ['a list of something else', () => Response.json({ object: 'list', data: [{ name: 'x' }] })],
    ['null for a list', () => Response.json({ object: 'list', data: null })],
    ['an error', () => new Response('{"object":"list","data":[{"id":"x"}]}', { status: 401 })],
    [
      'another hopgate',
      () => {
        const response = list('x');
        response.headers.set('x-hopgate-request-id', 'req_1_aaaaaa');
        return response;
      },
    ],
  ])('%s at the port is not taken for one', async (_, answer) => {
    expect(names(await found({}, servers({ 8080: answer })))).toEqual(['demo']);
  });

  test('a server that never answers or never ends delays the start only briefly', async () => {
    const stuck: Fetch = (url) => {
      requests.push(url);
      if (url.includes(':8080')) return new Promise(() => {});
      return Promise.resolve(
        new Response(new ReadableStream({ pull: () => new Promise(() => {}) })),
      );
    };
    expect(names(await found({}, stuck))).toEqual(['demo']);
    expect(requests.toSorted()).toEqual([
      'http://127.0.0.1:11434/v1/models',
      'http://127.0.0.1:1234/v1/models',
      'http://127.0.0.1:8000/v1/models',
      'http://127.0.0.1:8080/v1/models',
      'http://127.0.0.1:9931/v1/models',
    ]);
  });

  test('no server is asked when the file has providers', async () => {
    let count = 0;
    const counting: Fetch = async () => {
      count++;
      throw new Error('refused');
    };
    const file = `${import.meta.dir}/../../../node_modules/.hopgate-discover-test.yaml`;
    await Bun.write(file, 'providers: { glm: {} }');
    try {
      await loadConfig({ path: file, environment: env(), fetch: counting });
    } finally {
      await Bun.file(file).delete();
    }
    expect(count).toBe(0);
  });
});

describe('nothing found', () => {
  test('the demo serves its model and any other name', async () => {
    const of = await found({}, servers({}));
    expect(of.source.kind).toBe('demo');
    expect(of.providers.demo).toMatchObject({
      protocol: 'openai-chat',
      baseUrl: 'demo:',
      models: ['demo', '*'],
      profile: { name: 'none' },
    });
  });
});

describe('presets', () => {
  test('each has an existing profile for each protocol', () => {
    for (const name of presetNames()) {
      const preset = presetOf(name)!;
      const profiles = Object.values(preset.endpoints).map((endpoint) => endpoint.profile);
      for (const profile of [preset.profile, ...profiles])
        expect(PROFILES).toHaveProperty([profile]);
    }
  });

  test('each is enough for a provider; platforms need a place', () => {
    for (const name of presetNames()) {
      const place = {
        vertex: ', project: p, location: global',
        bedrock: ', region: r-1',
        azure: ', resource: r',
      };
      const { platform } = presetOf(name)!;
      const more = platform === undefined ? '' : place[platform];
      const result = parse(`providers: { x: { preset: ${name}${more} } }`);
      expect([name, result.ok]).toEqual([name, true]);
    }
    expect(
      config(parse('providers: { azure: { preset: azure, base_url: "https://r.test/openai/v1" } }'))
        .providers.azure,
    ).toMatchObject({ auth: 'api-key', profile: { name: 'azure-responses' } });
  });
});

describe('a server that starts later', () => {
  test.each([
    ['that refused at first', () => Promise.reject(new TypeError('connection refused'))],
    ['that was loading', () => Promise.resolve(new Response('Loading model', { status: 503 }))],
  ])('%s is found while the demo model stands in for it', async (_, before) => {
    let up = false;
    const fetch: Fetch = async (url, init) =>
      up ? servers({ 9931: () => list('qwen3-8b') })(url, init) : before();
    const options = { environment: env({ HOME: '/nonexistent' }), fetch };
    const live = liveConfig(config(await loadConfig(options)), options);
    const results: ReloadResult[] = [];
    const seen: string[] = [];
    live.subscribe((next) => seen.push(...names(next)));
    live.seek((result) => results.push(result), { first: 5, longest: 20 });
    try {
      await Bun.sleep(60);
      expect(live.current.source.kind).toBe('demo');
      expect(seen).toEqual([]);
      up = true;
      await until(() => live.current.source.kind === 'discovered');
      expect(names(live.current)).toEqual(['llamacpp-9931']);
      expect(live.current.providers['llamacpp-9931']).toMatchObject({
        baseUrl: 'http://127.0.0.1:9931/v1',
        models: ['qwen3-8b'],
      });
      await Bun.sleep(60);
      expect(results).toHaveLength(1);
      expect(results[0]).toMatchObject({ ok: true });
    } finally {
      live.close();
    }
  });

  test('no server is asked when there is a provider, or after the end', async () => {
    let looks = 0;
    const fetch: Fetch = () => {
      looks++;
      return Promise.reject(new TypeError('connection refused'));
    };
    const options = { environment: env({ HOME: '/nonexistent', GROQ_API_KEY: 'k' }), fetch };
    const live = liveConfig(config(await loadConfig(options)), options);
    const before = looks;
    live.seek(() => undefined, { first: 5, longest: 5 });
    await Bun.sleep(40);
    live.close();
    expect(looks).toBe(before);
  });
});

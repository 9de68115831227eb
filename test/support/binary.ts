/** Starts the compiled binary for tests, with configurations that most of them share. */

import type { FakeProtocol } from './fake-upstream/answer.ts';
import type { FakeUpstream, Protocol } from './fake-upstream/index.ts';
import { type Gateway, type GatewayOptions, startOneGateway } from './gateway-process.ts';
import { startAsOne } from './replicas.ts';

export {
  BINARY,
  binary,
  cleanEnv,
  type Gateway,
  type GatewayOptions,
  runBinary,
} from './gateway-process.ts';

/**
 * Starts `hopgate serve` with this configuration (a value, written as JSON, which is valid YAML; or text). With
 * `HOPGATE_TEST_REPLICAS`, so many of them behind a load balancer, on one cache. @throws Error with the process's
 * output when it exits or stays silent
 */
export function startGateway(config: unknown, options: GatewayOptions = {}): Promise<Gateway> {
  const count = Number(process.env.HOPGATE_TEST_REPLICAS ?? 1);
  if (count === 1) return startOneGateway(config, options);
  return startAsOne(config, count, options);
}

const PROVIDERS: Readonly<Record<string, Protocol>> = {
  chat: 'openai-chat',
  responses: 'openai-responses',
  messages: 'anthropic-messages',
};

/**
 * A configuration with one provider per protocol, all served by the same fake vendor: the models `via-chat`,
 * `via-responses`, `via-messages` go out as `m1` of their provider.
 */
export function threeProviders(upstream: FakeUpstream, more: Record<string, unknown> = {}): object {
  const providers = Object.entries(PROVIDERS).map(([name, protocol]) => [
    name,
    { protocol, base_url: upstream.baseUrl(protocol), keys: ['sk-upstream'], models: ['m1'] },
  ]);
  return {
    providers: Object.fromEntries(providers),
    routes: Object.keys(PROVIDERS).map((name) => ({
      when: { model: `via-${name}` },
      to: [`${name}/m1`],
    })),
    samples: { mode: 'off' },
    // Tests cause many faults, so the pauses between tries are short.
    retry: { base_delay: 0.02, max_delay: 2 },
    ...more,
  };
}

/** A provider of each protocol, named by it, with the one model `m-PROTOCOL`, which is asked once. */
export const providersOf = (
  upstream: FakeUpstream,
  protocols: readonly FakeProtocol[],
): object => ({
  providers: Object.fromEntries(
    protocols.map((protocol) => [
      protocol,
      {
        protocol,
        base_url: upstream.baseUrl(protocol),
        keys: ['sk-upstream'],
        models: [`m-${protocol}`],
      },
    ]),
  ),
  retry: { attempts: 1 },
});

/**
 * {@link threeProviders} with Gemini beside them: `via-gemini` goes out as `gemini-3-m1`, a model that wants its calls signed.
 */
export function allProviders(upstream: FakeUpstream, more: Record<string, unknown> = {}): object {
  const three = threeProviders(upstream, more) as { providers: object; routes: readonly object[] };
  const gemini = {
    protocol: 'google-gemini',
    base_url: upstream.baseUrl('google-gemini'),
    keys: ['sk-upstream'],
    profile: 'google-gemini',
    models: ['gemini-3-m1'],
  };
  return {
    ...three,
    providers: { ...three.providers, gemini },
    routes: [...three.routes, { when: { model: 'via-gemini' }, to: ['gemini/gemini-3-m1'] }],
  };
}

/** Requests and routing tables for the tests of this folder. */

import { environmentFrom } from '../../src/config/environment.ts';
import { describeProblem } from '../../src/config/file/problem.ts';
import { parseConfig } from '../../src/config/load.ts';
import {
  type RouteRequest,
  type RoutingTable,
  route,
  routingTable,
} from '../../src/routing/index.ts';

export function table(yaml: string): RoutingTable {
  const environment = environmentFrom({ HOME: '/home/u' });
  const result = parseConfig(yaml, '/c/hopgate.yaml', environment);
  if (!result.ok) throw new Error(result.problems.map((one) => describeProblem(one)).join('\n'));
  return routingTable(result.config);
}

/** Two vendors and a local server, the setup of most tests. */
export const PROVIDERS = `
providers:
  glm: { keys: [k], models: [glm-4.7, glm-4.5v] }
  claude: { preset: anthropic, keys: [k], models: ["claude-*"] }
  local: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [qwen3, glm-4.7] }
`;

export const request = (changes: Partial<RouteRequest> = {}): RouteRequest => ({
  model: 'm',
  protocol: 'anthropic-messages',
  affinity: 'session',
  stream: true,
  tokens: 1000,
  images: 0,
  documents: 0,
  toolNames: [],
  hostedTools: [],
  thinking: false,
  effort: undefined,
  headers: new Headers(),
  time: Date.UTC(2026, 10, 18, 12, 0), // a Wednesday
  lastUserText: '',
  background: false,
  ...changes,
});

/** `provider/model` of every target, in order; the error's code when there is none. */
export function places(changes: Partial<RouteRequest>, of: RoutingTable): readonly string[] {
  const decision = route(request(changes), of);
  if (!decision.ok) return [decision.error.code ?? ''];
  return decision.targets.map(({ target }) => `${target.provider}/${target.model}`);
}

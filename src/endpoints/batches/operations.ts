/** Operations of clients on files and batches: by method and path, in the API of OpenAI and in that of Anthropic. */

import type { EndpointName } from '../../conversation/models/endpoint-names.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import type { VendorApi } from './vendor-objects.ts';

export interface Operation {
  readonly name: EndpointName;
  readonly kind: 'file' | 'batch';
  /** Undefined: the client's headers say which. */
  readonly api: VendorApi | undefined;
  readonly does: 'create' | 'list' | 'get' | 'cancel' | 'remove' | 'content';
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Behind `/v1`; `:id` stands for the id. */
  readonly path: string;
}

type Listed = readonly [Operation['does'], Operation['method'], string];

const all = (
  about: Pick<Operation, 'name' | 'kind' | 'api'>,
  ...listed: readonly Listed[]
): readonly Operation[] => listed.map(([does, method, path]) => ({ ...about, does, method, path }));

export const OPERATIONS: readonly Operation[] = [
  ...all(
    { name: 'files', kind: 'file', api: undefined },
    ['create', 'POST', '/files'],
    ['list', 'GET', '/files'],
    ['get', 'GET', '/files/:id'],
    ['remove', 'DELETE', '/files/:id'],
    ['content', 'GET', '/files/:id/content'],
  ),
  ...all(
    { name: 'batches', kind: 'batch', api: 'openai' },
    ['create', 'POST', '/batches'],
    ['list', 'GET', '/batches'],
    ['get', 'GET', '/batches/:id'],
    ['cancel', 'POST', '/batches/:id/cancel'],
  ),
  ...all(
    { name: 'messages-batches', kind: 'batch', api: 'anthropic' },
    ['create', 'POST', '/messages/batches'],
    ['list', 'GET', '/messages/batches'],
    ['get', 'GET', '/messages/batches/:id'],
    ['cancel', 'POST', '/messages/batches/:id/cancel'],
    ['remove', 'DELETE', '/messages/batches/:id'],
    ['content', 'GET', '/messages/batches/:id/results'],
  ),
];

/** Why a provider cannot have this API; undefined: it may. */
export function whyNot(provider: RoutedTarget['provider'], api: VendorApi): string | undefined {
  const { name, protocol, platform, baseUrl } = provider;
  if (baseUrl.startsWith('demo:')) return `${name} is the built-in demo model`;
  if (api === 'anthropic') {
    if (protocol !== 'anthropic-messages') return `${name} speaks ${protocol}`;
    return platform === undefined ? undefined : `${name} is ${platform.name}, which has none`;
  }
  return protocol === 'openai-chat' || protocol === 'openai-responses'
    ? undefined
    : `${name} speaks ${protocol}`;
}

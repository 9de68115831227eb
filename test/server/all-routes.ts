/** Every route that the server declares, taken from its plugins. */

import { adminPlugin } from '../../src/admin/plugin.ts';
import { messagesPlugin } from '../../src/codecs/anthropic-messages/plugin.ts';
import { geminiPlugin } from '../../src/codecs/google-gemini/plugin.ts';
import { chatCompletionsPlugin } from '../../src/codecs/openai-chat/plugin.ts';
import { responsesPlugin } from '../../src/codecs/openai-responses/plugin.ts';
import { endpointsPlugin } from '../../src/endpoints/plugin.ts';
import { memoryPlugin } from '../../src/features/memory/api/plugin.ts';
import type { KeyChanges } from '../../src/keys/key-changes.ts';
import { manualPlugin } from '../../src/manual/plugin.ts';
import type { Route } from '../../src/server/endpoints.ts';
import type { ErrorResponses } from '../../src/server/errors.ts';
import { modelsPlugin } from '../../src/server/models.ts';
import {
  aboutPlugin,
  healthPlugin,
  metricsPlugin,
  targetHealthPlugin,
} from '../../src/server/own-routes.ts';

/** Handlers are not called: only paths and methods count. */
const never = () => {
  throw new Error('not to be called');
};

export const ALL_ROUTES: readonly Route[] = [
  chatCompletionsPlugin({ serve: never }),
  messagesPlugin({ serve: never, countTokens: never }),
  geminiPlugin({ serve: never, countTokens: never, embed: never, errors: { response: never } }),
  responsesPlugin({
    serve: never,
    responses: {
      search: never,
      socket: never,
      retrieve: never,
      remove: never,
      inputItems: never,
      cancel: never,
      inputTokens: never,
      compact: never,
      conversations: never,
      refuse: never,
    },
  }),
  endpointsPlugin({ serveEndpoint: never, serveOperation: never }),
  healthPlugin({ unready: never }),
  modelsPlugin({ errors: {} as ErrorResponses, models: never, codexModels: never, model: never }),
  metricsPlugin({
    errors: {} as ErrorResponses,
    metricsText: never,
    isOperator: () => false,
    seesAll: () => false,
  }),
  targetHealthPlugin({
    errors: {} as ErrorResponses,
    health: { snapshot: never, engines: never },
    isOperator: () => false,
    seesAll: () => false,
  }),
  aboutPlugin({ version: '' }),
  memoryPlugin({
    serve: never,
    memory: never,
    erase: never,
    version: '',
  }),
  adminPlugin({
    admin: never,
    address: never,
    keys: {} as KeyChanges,
    configured: never,
    reports: {},
    onChange: never,
    onFailure: never,
  }),
  manualPlugin({ version: '', noPage: never }),
].flatMap(({ routes }) => routes);

/** The server: one Elysia app, one plugin per feature, in the order in which a request meets them. */

import { type AnyElysia, Elysia } from 'elysia';
import { createServices } from './app/wiring.ts';
import { messagesPlugin } from './codecs/anthropic-messages/plugin.ts';
import { geminiPlugin } from './codecs/google-gemini/plugin.ts';
import { chatCompletionsPlugin } from './codecs/openai-chat/plugin.ts';
import { responsesPlugin } from './codecs/openai-responses/plugin.ts';
import { endpointsPlugin } from './endpoints/plugin.ts';
import { usagePlugin } from './limits/plugin.ts';
import type { CreateApp } from './server/hopgate-app.ts';
import { modelsPlugin } from './server/models.ts';
import {
  aboutPlugin,
  healthPlugin,
  metricsPlugin,
  targetHealthPlugin,
} from './server/own-routes.ts';
import { nativeRoutes, onDemand } from './server/plugin-routes.ts';
import { answerAll } from './server/server.ts';

export const createApp: CreateApp = (options) => {
  const services = createServices(options, createApp);
  const { errors } = services;

  // Bun's own router matches the routes of model requests: they have no hooks, and bodies stay unread.
  const native = new Elysia({ name: 'native' })
    .use(chatCompletionsPlugin(services))
    .use(messagesPlugin(services))
    .use(responsesPlugin(services))
    .use(geminiPlugin(services))
    .use(endpointsPlugin(services))
    .use(healthPlugin(services));

  let app: AnyElysia | undefined;
  // Made with the first request that is none of these. The path of a request may begin behind a host of any length.
  const makeApp = (): AnyElysia =>
    new Elysia({ name: 'hopgate', handler: { standardHostname: false } })
      .onError(errors.handle(() => app!.routes))
      .use(native)
      .use(modelsPlugin(services))
      .use(metricsPlugin(services))
      .use(targetHealthPlugin(services))
      .use(aboutPlugin(services))
      .use(usagePlugin(services))
      .use(
        onDemand('/v1/memory', errors, () =>
          import('./features/memory/api/plugin.ts').then((m) => m.memoryPlugin(services.memoryApi)),
        ),
      )
      .use(
        onDemand('/admin/v1', errors, () =>
          import('./admin/plugin.ts').then(({ adminPlugin }) => adminPlugin(services.admin)),
        ),
      )
      .use(
        onDemand('/ui', errors, () =>
          import('./ui/plugin.ts').then(({ uiPlugin }) => uiPlugin(services.ui)),
        ),
      )
      .use(
        onDemand('/docs', errors, () =>
          import('./manual/plugin.ts').then((m) => m.manualPlugin(services)),
        ),
      );

  const fetchApp = (request: Request) => {
    app ??= makeApp();
    return app.fetch(request);
  };

  return {
    app: services.cors.around(answerAll(nativeRoutes(native), fetchApp, services)),
    ...services.lifecycle,
  };
};

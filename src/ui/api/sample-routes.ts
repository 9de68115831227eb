/** `/ui/api/samples…`: the list of exchanges, one exchange, and what is read from its bodies. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { publicOrigin } from '../../lib/http/client-address.ts';
import { json, jsonInSlices, plain } from './answers.ts';
import {
  CONVERSATION_QUERY,
  conversationOf,
  EVENTS_QUERY,
  eventsView,
  RAW_QUERY,
  rawBody,
} from './bodies/body-views.ts';
import { curlLine } from './bodies/curl.ts';
import { diffOf } from './bodies/diff-view.ts';
import type { ApiContext } from './context.ts';
import { guard } from './guard.ts';
import { LIST_QUERY, samplesPage } from './list.ts';
import { queryOf } from './parameters.ts';
import { detailOf } from './sample.ts';

export const sampleRoutes = (context: ApiContext) =>
  new Elysia()
    .use(guard(context.options))
    .get(
      '/samples',
      async ({ query, viewer }) => {
        const q = query.q?.trim() ?? '';
        const found = q === '' ? undefined : await context.texts.find(q, viewer.owner);
        const page = await samplesPage(context.store, query, viewer, context.prices, found);
        return json(found === undefined ? page : { ...page, unread: found.unread });
      },
      queryOf(LIST_QUERY),
    )
    .group('/samples/:id', { params: Type.Object({ id: Type.String() }) }, (one) =>
      one
        .resolve(async ({ params, viewer }) => ({
          meta: await context.sampleFor(params.id, viewer),
        }))
        .get('', ({ meta }) => json(detailOf(context.store, meta, context.prices, context.options)))
        .get(
          '/diff',
          ({ meta, query }) => jsonInSlices(diffOf(context.store, meta, query, context.options)),
          {
            query: Type.Object({
              a: Type.Optional(Type.String()),
              b: Type.Optional(Type.String()),
            }),
          },
        )
        .get(
          '/curl',
          ({ meta, query, request }) => {
            const origin = publicOrigin(request);
            return plain(
              curlLine(context.store, meta, query.stage, context.options.config(), origin),
            );
          },
          { query: Type.Object({ stage: Type.String({ default: 'client-request' }) }) },
        )
        .get(
          '/export',
          ({ meta, query }) => {
            const redact = query.redact === '1';
            const name = `${meta.id}${redact ? '-redacted' : ''}.json`;
            const disposition = { 'content-disposition': `attachment; filename="${name}"` };
            return jsonInSlices(context.store.export(meta, redact), disposition);
          },
          { query: Type.Object({ redact: Type.Optional(Type.String()) }) },
        )
        .group(
          '/edges/:stage',
          { params: Type.Object({ id: Type.String(), stage: Type.String() }) },
          (body) =>
            body
              .get(
                '',
                ({ meta, params, query }) => rawBody(context.store, meta, params.stage, query),
                queryOf(RAW_QUERY),
              )
              .get(
                '/conversation',
                ({ meta, params, query }) =>
                  jsonInSlices(
                    conversationOf(context.store, meta, params.stage, query, context.options),
                  ),
                queryOf(CONVERSATION_QUERY),
              )
              .get(
                '/events',
                ({ meta, params, query }) =>
                  jsonInSlices(
                    eventsView(context.store, meta, params.stage, query, context.options),
                  ),
                queryOf(EVENTS_QUERY),
              ),
        ),
    );

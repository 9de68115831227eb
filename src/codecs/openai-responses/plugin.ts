/** The routes of Responses: creating one, and what is stored. */

import { Elysia } from 'elysia';
import type { ModelEntry } from '../../conversation/models/model-entry.ts';
import { RAW, type RequestContext } from '../../lib/http/routes.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { Serve } from '../serve.ts';
import { openaiResponses } from './index.ts';

type ById = (request: Request, id: string) => Promise<Response>;

export interface ResponsesOptions {
  readonly serve: Serve;
  readonly responses: {
    /** `POST /v1/alpha/search`, by which Codex' code mode searches. */
    readonly search: Serve;
    /** An upgrade to a WebSocket; undefined: the connection is one now. */
    readonly socket: (request: Request) => Promise<Response | undefined>;
    /** Stored responses. */
    readonly retrieve: ById;
    readonly remove: ById;
    readonly inputItems: ById;
    readonly cancel: ById;
    /** `POST /v1/responses/input_tokens`. */
    readonly inputTokens: Serve;
    /** `POST /v1/responses/compact`. */
    readonly compact: Serve;
    /** Endpoints of OpenAI that this gateway refuses in words. */
    readonly conversations: Serve;
    /** An error in this protocol's shape. */
    readonly refuse: (status: number, message: string) => Response;
  };
}

/** `POST /v1/responses`, the same over WebSocket, and the stored responses. */
export function responsesPlugin({ serve, responses }: ResponsesOptions) {
  const { refuse } = responses;
  const by =
    (handle: Serve) =>
    ({ request }: RequestContext) =>
      handle(request, openaiResponses);
  const byId =
    (handle: ById) =>
    ({ request, params }: RequestContext & { params: { id: string } }) =>
      handle(request, params.id);
  const notPost = ({ request }: RequestContext) =>
    request.headers.get('upgrade')?.toLowerCase() === 'websocket'
      ? responses.socket(request)
      : refuse(405, 'Use POST to create a response, or upgrade to a WebSocket.');
  const app = new Elysia({ name: 'responses' })
    .post('/v1/responses', by(serve), RAW)
    .get('/v1/responses', notPost)
    .post('/responses', by(serve), RAW)
    .get('/responses', notPost)
    .post('/v1/alpha/search', by(responses.search), RAW)
    .post('/v1/responses/input_tokens', by(responses.inputTokens), RAW)
    .post('/v1/responses/compact', by(responses.compact), RAW)
    .post('/responses/compact', by(responses.compact), RAW)
    .get('/v1/responses/:id', byId(responses.retrieve))
    .delete('/v1/responses/:id', byId(responses.remove), RAW)
    .post('/v1/responses/:id/cancel', byId(responses.cancel), RAW)
    .get('/v1/responses/:id/input_items', byId(responses.inputItems));
  const conversations = by(responses.conversations);
  for (const path of ['', '/:id', '/:id/items', '/:id/items/:item']) {
    app
      .get(`/v1/conversations${path}`, conversations)
      .post(`/v1/conversations${path}`, conversations, RAW)
      .delete(`/v1/conversations${path}`, conversations, RAW);
  }
  return app;
}

/** Codex takes this for its own instructions to a model; it must not be empty, or the model gets none. */
const INSTRUCTIONS =
  'You are a coding agent in Codex, a program in the terminal of the user, whose files you read and change with the tools you have. Look at the code before you change it. Keep to the task and to the style of the project, and change nothing else. Check your work with what the project has for that. Say briefly what you did, what you checked, and what is left.';

const EFFORTS = [
  { effort: 'low', description: 'Short reasoning, quick answers.' },
  { effort: 'medium', description: 'Reasoning as the task needs it.' },
  { effort: 'high', description: 'Long reasoning for hard tasks.' },
];

/** Codex cuts an answer of a tool that takes more of the window. */
const TOOL_BYTES = 10_000;

/**
 * The models that may be agents, in Codex' fields (openai/codex, codex-rs/protocol: `ModelInfo`). Tools that a
 * model calls in parallel, patches as free text and reasoning summaries all pass through this gateway to any vendor.
 */
export const codexModels = (models: readonly ModelEntry[]): JsonObject => ({
  models: models
    .filter(({ facts }) => facts?.tools !== false)
    .map(({ id, provider, facts }, index) => ({
      slug: id,
      display_name: facts?.name ?? id,
      description: `Served by ${provider === '' ? 'this gateway' : provider}.`,
      default_reasoning_level: facts?.reasoning === true ? 'medium' : null,
      supported_reasoning_levels: facts?.reasoning === true ? EFFORTS : [],
      shell_type: 'shell_command',
      visibility: 'list',
      minimal_client_version: [0, 99, 0],
      supported_in_api: true,
      priority: index,
      upgrade: null,
      base_instructions: INSTRUCTIONS,
      supports_reasoning_summaries: facts?.reasoning === true,
      support_verbosity: false,
      default_verbosity: null,
      apply_patch_tool_type: 'freeform',
      truncation_policy: { mode: 'bytes', limit: TOOL_BYTES },
      supports_parallel_tool_calls: true,
      context_window: facts?.context ?? null,
      ...(facts?.input !== undefined && {
        input_modalities: facts.input.filter((kind) => kind === 'text' || kind === 'image'),
      }),
      experimental_supported_tools: [],
    })),
});

/** The list of models as Codex asks for it: `GET /v1/models?client_version=…`. */

import type { ModelEntry } from '../../conversation/models/model-entry.ts';
import type { JsonObject } from '../../lib/json/json.ts';

/** Codex takes this for its own instructions to a model; it must not be empty, or the model gets none. */
const INSTRUCTIONS =
  'You are a coding agent in Codex, a program in the terminal of the user, whose files you read and change with the tools you have. Look at the code before you change it. Keep to the task and to the style of the project, and change nothing else. Check your work with what the project has for that. Say briefly what you did, what you checked, and what is left.';

const EFFORTS = [
  { effort: 'low', description: 'Short reasoning, quick answers.' },
  { effort: 'medium', description: 'Reasoning as the task needs it.' },
  { effort: 'high', description: 'Long reasoning for hard tasks.' },
];

/** What an answer of a tool may take of the window before Codex cuts it. */
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

/** Decodes the parameters of a Messages request: everything except model, system, messages and tools. */

import type {
  OutputFormat,
  ReasoningSettings,
  Settings,
  Tool,
  ToolChoice,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { membersBeside } from '../../../lib/json/json-members.ts';
import { compact } from '../../../lib/json/typed-reads.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { number, ownWire, text } from '../wire.ts';

/** Top-level keys that are decoded; all others go to `settings.rest`. */
const KNOWN = wordSet(`
  model messages system tools max_tokens stream temperature top_p top_k stop_sequences
  tool_choice thinking output_config output_format metadata service_tier`);

export function decodeSettings(body: JsonObject, tools: readonly Tool[]): Settings {
  const choice = isObject(body.tool_choice) ? body.tool_choice : undefined;
  const config = isObject(body.output_config) ? body.output_config : {};
  const metadata = isObject(body.metadata) ? body.metadata : {};
  const { user_id: userId, ...others } = metadata;
  const stop = Array.isArray(body.stop_sequences)
    ? body.stop_sequences.filter((item): item is string => typeof item === 'string')
    : undefined;
  const single = choice?.disable_parallel_tool_use;
  return compact<Settings>({
    stream: body.stream === true,
    maxTokens: number(body.max_tokens),
    temperature: number(body.temperature),
    topP: number(body.top_p),
    topK: number(body.top_k),
    stop,
    toolChoice: choice === undefined ? undefined : decodeToolChoice(choice, tools),
    parallelTools: typeof single === 'boolean' ? !single : undefined,
    reasoning: decodeReasoning(body.thinking, config.effort),
    format: decodeFormat(config.format) ?? decodeFormat(body.output_format),
    metadata: Object.keys(others).length > 0 ? others : undefined,
    user: text(userId),
    serviceTier: text(body.service_tier),
    rest: membersBeside(body, KNOWN),
  });
}

function decodeToolChoice(choice: JsonObject, tools: readonly Tool[]): ToolChoice | undefined {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { type: choice.type };
    case 'any':
      return { type: 'required' };
    case 'tool': {
      const name = text(choice.name) ?? '';
      const hosted = tools.find((tool) => {
        const wire = tool.type === 'hosted' ? ownWire(tool) : undefined;
        return isObject(wire) && wire.name === name;
      });
      return hosted === undefined
        ? { type: 'tool', name, kind: 'function' }
        : { type: 'tool', name: hosted.name, kind: 'hosted' };
    }
    default:
      return undefined;
  }
}

function decodeReasoning(
  thinking: Json | undefined,
  effort: Json | undefined,
): ReasoningSettings | undefined {
  const how = isObject(thinking) ? thinking : undefined;
  if (how === undefined && typeof effort !== 'string') return undefined;
  const type = how?.type;
  return compact<ReasoningSettings>({
    enabled: how === undefined ? undefined : type !== 'disabled',
    effort: text(effort),
    budget: number(how?.budget_tokens),
    // With between_tools the model decides the amount too.
    adaptive: type === 'adaptive' || type === 'between_tools' ? true : undefined,
    display: text(how?.display),
  });
}

function decodeFormat(format: Json | undefined): OutputFormat | undefined {
  if (!isObject(format) || format.type !== 'json_schema' || !isObject(format.schema)) {
    return undefined;
  }
  return { type: 'schema', name: text(format.name), schema: format.schema };
}

/** Tool declarations of a Messages request, decoded. */

import { invalid } from '../../../conversation/errors.ts';
import type { Tool } from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { decodeCache, flag, object, text, wireOf } from '../wire.ts';
import { clientToolSchema } from './client-tool-schemas.ts';

/** @throws GatewayError invalid_request for a tool that is no object, has no name, or has a schema of the wrong type */
export function decodeTools({ tools }: JsonObject): readonly Tool[] {
  if (tools === undefined || tools === null) return [];
  if (!Array.isArray(tools)) throw invalid('tools: Input should be a valid list', 'tools');
  return tools.map((tool, i) => {
    if (!isObject(tool))
      throw invalid(`tools.${i}: Input should be a valid dictionary`, `tools.${i}`);
    return decodeTool(tool, `tools.${i}`);
  });
}

function decodeTool(tool: JsonObject, path: string): Tool {
  const type = text(tool.type);
  // A client's function may have the name of a hosted tool; only the type distinguishes them.
  if (type !== undefined && type !== 'custom') return decodeTyped(type, tool);
  const name = text(tool.name);
  if (name === undefined) {
    throw invalid(
      `${path}.name: ${tool.name === undefined ? 'Field required' : 'Input should be a valid string'}`,
      `${path}.name`,
    );
  }
  const schema = tool.input_schema;
  if (schema !== undefined && schema !== null && !isObject(schema)) {
    throw invalid(
      `${path}.input_schema: Input should be a valid dictionary`,
      `${path}.input_schema`,
    );
  }
  return {
    type: 'function',
    name,
    description: text(tool.description),
    schema: object(schema),
    strict: flag(tool.strict),
    cache: decodeCache(tool.cache_control),
    deferred: tool.defer_loading === true || undefined,
    wire: wireOf(tool),
  };
}

/** `web_search_20250305` → web_search, `tool_search_tool_bm25_20251119` → tool_search. */
function family(type: string): string {
  const undated = type.replace(/_\d{8}$/, '');
  return undated.startsWith('tool_search_tool') ? 'tool_search' : undated;
}

function decodeTyped(type: string, tool: JsonObject): Tool {
  const name = family(type);
  const client = clientToolSchema(name);
  if (client !== undefined) {
    return {
      type: 'function',
      name: text(tool.name) ?? name,
      description: client.description + screenSize(tool),
      schema: client.schema,
      wire: wireOf(tool),
    };
  }
  const { type: _type, name: _name, ...options } = tool;
  return { type: 'hosted', name, kind: type, options, wire: wireOf(tool) };
}

/** The screen size and coordinates, for a model that was not trained on this tool. */
function screenSize(tool: JsonObject): string {
  const { display_width_px: width, display_height_px: height } = tool;
  if (typeof width !== 'number' || typeof height !== 'number') return '';
  return ` The screen is ${width} pixels wide and ${height} pixels high; coordinates are [x, y] from its top left corner.`;
}

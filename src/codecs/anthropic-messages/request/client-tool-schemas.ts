/** Input schemas of Anthropic's client-run tools, which Messages clients declare without a schema. */

import type { JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';

const text = { type: 'string' } as const;
const whole = { type: 'integer' } as const;
const point = { type: 'array', items: whole, minItems: 2, maxItems: 2 } as const;

const object = (properties: JsonObject, required: readonly string[]): JsonObject => ({
  type: 'object',
  properties,
  required,
});

const editorCommands = ['view', 'create', 'str_replace', 'insert'] as const;

/** By wire type without its date. */
const SCHEMAS: Readonly<Record<string, { description: string; schema: JsonObject }>> = {
  bash: {
    description: 'Runs a command in a persistent bash session.',
    schema: object({ command: text, restart: { type: 'boolean' } }, []),
  },
  text_editor: {
    description: 'Views, creates and edits files.',
    schema: object(
      {
        command: { type: 'string', enum: [...editorCommands, 'undo_edit'] },
        path: text,
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: whole,
        insert_text: text,
        view_range: { type: 'array', items: whole },
      },
      ['command', 'path'],
    ),
  },
  memory: {
    description: 'Reads and writes notes as files below /memories.',
    schema: object(
      {
        command: { type: 'string', enum: [...editorCommands, 'delete', 'rename'] },
        path: text,
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: whole,
        insert_text: text,
        view_range: { type: 'array', items: whole },
        old_path: text,
        new_path: text,
      },
      ['command'],
    ),
  },
  computer: {
    description: 'Controls a screen with mouse and keyboard; answers with screenshots.',
    schema: object(
      {
        action: {
          type: 'string',
          enum: [
            'key',
            'type',
            'mouse_move',
            'left_click',
            'left_click_drag',
            'right_click',
            'middle_click',
            'double_click',
            'triple_click',
            'left_mouse_down',
            'left_mouse_up',
            'hold_key',
            'scroll',
            'wait',
            'zoom',
            'screenshot',
            'cursor_position',
          ],
        },
        coordinate: point,
        start_coordinate: point,
        text,
        duration: { type: 'number' },
        scroll_direction: { type: 'string', enum: ['up', 'down', 'left', 'right'] },
        scroll_amount: whole,
        region: { type: 'array', items: whole, minItems: 4, maxItems: 4 },
      },
      ['action'],
    ),
  },
};

/**
 * The description and input schema of a tool that the vendor defines and the client runs (`bash_…`,
 * `text_editor_…`, `memory_…`, `computer_…`); undefined for hosted tools.
 */
export function clientToolSchema(
  family: string,
): { readonly description: string; readonly schema: JsonObject } | undefined {
  return memberOf(SCHEMAS, family);
}

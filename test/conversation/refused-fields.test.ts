/** Fields of agents in messages that vendors refuse as unknown, in the words of several vendors. */

import { expect, test } from 'bun:test';
import { refusedFields, withoutFields } from '../../src/conversation/refusal/refused-fields.ts';

test.each([
  "Unknown parameter: 'messages[1].model_id'.",
  "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'model_id' is unsupported)]",
  "Additional properties are not allowed ('model_id' was unexpected) - 'messages.1'",
  'messages.1.model_id: Extra inputs are not permitted',
  'messages[1]: unknown field `model_id`, expected one of `role`, `content`',
])("a field of an agent's own in a message is taken out once it is refused: %s", (message) => {
  const body = {
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b', model_id: 'grok' },
    ],
  };
  const out = withoutFields(body, refusedFields(message), () => {});
  expect(out).toEqual({
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
  });
});

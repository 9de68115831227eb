/** The cost of sessions by the documented rules of vendors' prompt caches, as tables: `npx bun bench/prompt-caches.ts`. */

import { billOf, CLIENTS, VENDORS } from '../test/support/prompt-caches/bill.ts';
import { BROKEN_SESSIONS, SESSIONS } from '../test/support/prompt-caches/sessions.ts';

const NAMES = {
  'openai-chat': 'Chat',
  'openai-responses': 'Responses',
  'google-gemini': 'Gemini',
  'anthropic-messages': 'Messages',
} as const;

const ALL = { ...SESSIONS, ...BROKEN_SESSIONS };

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
const figure = (value: number) => value.toFixed(2);

const clients = CLIENTS.map((client) => NAMES[client]);
console.log('The dearest of all sessions, in multiples of the best bill:\n');
console.log(row(['vendor', ...clients]));
console.log(row(['---', ...clients.map(() => '---')]));
for (const [name, vendor] of Object.entries(VENDORS)) {
  const cells = CLIENTS.map((client) =>
    Math.max(...Object.values(ALL).map((asked) => billOf(client, vendor, asked).best)),
  );
  console.log(row([name, ...cells.map(figure)]));
}

const claude = VENDORS['Claude (Anthropic)']!;
console.log('\nOnto Claude at Anthropic, session by session:\n');
console.log(row(['session', ...clients, 'Chat, without any cache']));
console.log(row(['---', ...clients.map(() => '---'), '---']));
for (const [name, asked] of Object.entries(ALL)) {
  const cells = CLIENTS.map((client) => billOf(client, claude, asked).best);
  const { without } = billOf('openai-chat', claude, asked);
  console.log(row([name, ...cells.map(figure), figure(without)]));
}

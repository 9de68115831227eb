/** The name of a client in log lines and spend rows: its protocol, and its program without comments. */

import { redactText } from '../lib/text/redact.ts';

/** A user agent without its comment, `claude-cli/2.1.330`; at most 40 characters. */
export function shortAgent(userAgent: string | undefined): string {
  if (userAgent === undefined) return '';
  const comment = userAgent.indexOf('(');
  return (comment < 0 ? userAgent : userAgent.slice(0, comment)).trim().slice(0, 40);
}

// Most exchanges have the same few. Clients choose them: above this number all are forgotten, and longer ones
// are not remembered.
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 256;
const names = new Map<string, Map<string, string>>();

/** `openai-chat claude-cli/2.1.330`; credentials are masked. */
export function clientName(userAgent: string | undefined, protocol: string): string {
  if (userAgent === undefined) return protocol;
  let known = names.get(protocol);
  const before = known?.get(userAgent);
  if (before !== undefined) return before;
  const agent = shortAgent(userAgent);
  const name = agent === '' ? protocol : `${protocol} ${redactText(agent).text}`;
  if (userAgent.length > MAX_REMEMBERED_LENGTH) return name;
  if (known === undefined || known.size >= MAX_REMEMBERED) {
    known = new Map();
    names.set(protocol, known);
  }
  known.set(userAgent, name);
  return name;
}

/** Checks of the Chat and Responses APIs beyond pairing: messages, items, arguments of calls. */

export { parsableInputs } from './call-inputs.ts';
export { cleanChat } from './chat-messages.ts';
export { cleanItems, dropLoneReasoning } from './responses-items.ts';
